// RankAssignment decides which worker of an attempt has which ranks, once all workers are bound to nodes: workers whose
// machines are near each other get consecutive ranks, so that the neighbours in a ring share a rack wherever they can.
// Worker 0 always has rank 0. The map is kept in the job's status, so that every operator gives the attempt the same
// ranks. Pure.
//
// Gleaner's library gets its ranks from the coordinator (coordinator::Options::Indices). Other programs read RANK from
// their environment, for which the kubelet reads the ConfigMap of rank_map_object(). It does not start a container
// before that object exists, so no process can begin without its rank.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "operator/reconcile/observation.h"
#include "operator/reconcile/status_update.h"
#include "operator/reconcile/steps.h"
#include "operator/reconcile/workers.h"

namespace gleaner::reconcile {

struct RankDecision {
  StatusUpdate update;
  bool is_new = false;                   // the map was made now; the session must not begin before the status has it
  std::optional<nlohmann::json> object;  // the ConfigMap to create, unless it exists
  std::vector<PodRank> labels;           // workers whose pod lacks its rank as a label
};

// Requires that all workers are bound, or have succeeded.
RankDecision assign_ranks(const Observation& observation, const Workers& workers, StatusUpdate update);

// Sets the condition RanksOutdated while labels put the workers' machines into other groups than when the ranks were
// assigned: the ranks stay as they are until the next attempt.
void report_moved_machines(const Observation& observation, const Workers& workers, StatusUpdate& update);

// Returns the rank map of the attempt in the job's status; null: it has none yet, or the job has a single worker.
const api::RankMap* rank_map_of(const api::TrainingJob& job);

}  // namespace gleaner::reconcile
