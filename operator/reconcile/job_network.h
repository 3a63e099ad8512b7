// The network of an attempt's members, by which Auto chooses strategies and schedules get their ranks. Pure.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/api/rank_map.h"
#include "common/topology/topology.h"
#include "coordinator/roster/options.h"
#include "operator/reconcile/observation.h"
#include "operator/reconcile/steps.h"
#include "operator/reconcile/workers.h"

namespace gleaner::reconcile {

// Returns the network of the machines of the workers, with worker number i of the map as host i. Links have the
// bandwidths of the pods, or those that plans assume. Errors: those of fabric::network_of().
absl::StatusOr<topology::Topology> network_of_workers(const Observation& observation, const Workers& workers,
                                                      const api::RankMap& map);

// Sets the network of the session, and the groups of a strategy with groups, if groups of the cluster part the machines
// of the workers and of `summers`. These summers are where their nodes are. The session is told the groups of those
// that come later (groups_of_summers()): they are at the switch of the narrowest one that the network has, or at the
// core. Errors: those of fabric::network_of(), and of strategy::fit_to_network().
absl::Status set_network(const Observation& observation, const Workers& workers,
                         const std::vector<const PodView*>& summers, const api::RankMap& map,
                         coordinator::Options& options);

// Returns the groups of each summer of the attempt that has a machine.
std::vector<SummerGroups> groups_of_summers(const Observation& observation);

// Finds the ranks of the schedules that the session may choose (strategy::find_rank_maps()). To be called once, before
// the session opens: it takes up to some seconds. Sums in rank order need no map.
absl::Status map_schedules(coordinator::Options& options);

}  // namespace gleaner::reconcile
