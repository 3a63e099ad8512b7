// The network of an attempt's workers, by which Auto chooses strategies and schedules get their ranks. Pure.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/api/rank_map.h"
#include "common/topology/topology.h"
#include "coordinator/roster/options.h"
#include "operator/reconcile/observation.h"
#include "operator/reconcile/workers.h"

namespace gleaner::reconcile {

// Returns the network of the workers' machines, with worker number i of the map as host i. Links have the bandwidths of
// the workers, or those that plans assume. Errors: those of fabric::network_of().
absl::StatusOr<topology::Topology> network_of_workers(const Observation& observation, const Workers& workers,
                                                      const api::RankMap& map);

// Sets the network of the session, and the groups of a strategy with groups, if the map has groups. CPU summers are at
// the core, since they may come from any machine. Errors: those of network_of_workers(), and of
// strategy::fit_to_network().
absl::Status set_network(const Observation& observation, const Workers& workers, const api::RankMap& map,
                         coordinator::Options& options);

// Finds the ranks of the schedules that the session may choose (strategy::find_rank_maps()). To be called once, before
// the session opens: it takes up to some seconds. Sums in rank order need no map.
absl::Status map_schedules(coordinator::Options& options);

}  // namespace gleaner::reconcile
