// What a job's pods need for the transports that it may use. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include "operator/reconcile/pods.h"

namespace gleaner::reconcile {

// Variables of a member: which transports the job allows, and where its machine's shared directory is.
void add_transport_variables(const types::TrainingJob& job, const Settings& settings, nlohmann::json& environment);

// The shared directory, for a container that has these variables.
void add_shared_directory(const types::TrainingJob& job, const Settings& settings, nlohmann::json& container);
void add_shared_volume(const types::TrainingJob& job, const Settings& settings, nlohmann::json& pod_spec);

// The RDMA devices, and leave to pin memory for them. What the container asks for itself stays.
void add_rdma(const types::TrainingJob& job, const Settings& settings, nlohmann::json& container);

}  // namespace gleaner::reconcile
