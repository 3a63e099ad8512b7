// The variables by which programs that do not use Gleaner's library learn their rank: torch.distributed's RANK,
// WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and torchrun's PET_*. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/api/training_job.h"
#include "operator/reconcile/pod_view.h"

namespace gleaner::reconcile {

// Returns the name of the ConfigMap with the ranks of an attempt. A job of the same name that was deleted has another.
std::string rank_map_object_name(const api::TrainingJob& job);

// Returns that ConfigMap, for the rank map of the attempt in the job's status. It can't be changed.
nlohmann::json rank_map_object(const api::TrainingJob& job, const api::RankMap& map);

// Returns whether the pod's kubelet waits for that ConfigMap.
bool waits_for_rank(const api::TrainingJob& job, const PodView& pod);

// Adds the variables of the worker with this index to those of its containers. With several workers and
// spec.communication.rankMap Topology the rank refers to the ConfigMap, and the container does not start before it
// exists. With several local ranks, RANK and LOCAL_RANK are left to torchrun.
void add_rank_variables(const api::TrainingJob& job, uint32_t index, nlohmann::json& environment);

}  // namespace gleaner::reconcile
