// The strategy and the network of a job depend on each other: the racks of the network are the groups of a schedule,
// the tree that probes suggest is of use to some strategies only, and rank maps are found for the schedules that the
// job may use. So both are settled together, first by fit_to_network(), then by find_rank_maps(). Pure.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/strategy/rank_maps.h"
#include "common/strategy/strategy.h"

namespace gleaner::strategy {

struct NetworkedStrategy {
  Strategy strategy;
  JobNetwork network;
};

// Fits the strategy and the network to each other:
// - Auto, and schedules with groups, see the tree that probes suggest (probed_racks.h) in place of the probes. Other
//   strategies see each pair of hosts.
// - A schedule with groups and without factors takes the racks of the network (rack_times.h) as its groups.
// InvalidArgument: as validate(), or the workers are fewer than the groups that the schedule asks for.
absl::StatusOr<NetworkedStrategy> fit_to_network(Strategy strategy, JobNetwork network, uint32_t workers,
                                                 uint32_t summers);

// Sets network.mapped for the schedules that the job may use: that of its strategy, or with Auto those of
// schedules_for(). A strategy that is a schedule takes the ranks and masters of its map. With Auto and hundreds of
// workers this takes seconds. InvalidArgument: as schedules_for() or map_ranks().
absl::StatusOr<NetworkedStrategy> find_rank_maps(Strategy strategy, JobNetwork network, uint32_t workers);

}  // namespace gleaner::strategy
