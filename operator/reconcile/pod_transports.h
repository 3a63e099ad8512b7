// Functions that add to a job's pods the resources and variables that its transports need. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include "operator/reconcile/pods.h"

namespace gleaner::reconcile {

// Adds the variables that tell a member which transports the job allows, and where its machine's shared directory is
// mounted.
void add_transport_variables(const api::TrainingJob& job, const PodSettings& settings, nlohmann::json& environment);

// Mount the shared directory in a container that has these variables, and add the directory's volume to the pod.
void add_shared_directory(const api::TrainingJob& job, const PodSettings& settings, nlohmann::json& container);
void add_shared_volume(const api::TrainingJob& job, const PodSettings& settings, nlohmann::json& pod_spec);

// Adds a request for an RDMA device and the capability IPC_LOCK, which is needed to pin memory. Keeps a request for the
// same resource that the container already has.
void add_rdma(const api::TrainingJob& job, const PodSettings& settings, nlohmann::json& container);

}  // namespace gleaner::reconcile
