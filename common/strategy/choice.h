// choose() gives each new tensor of a job the fastest strategy for its size, by the modelled times of candidates.h.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/model.h"
#include "common/plan/plan.h"
#include "common/strategy/candidates.h"
#include "common/strategy/rank_maps.h"
#include "common/topology/topology.h"

namespace gleaner::strategy {

// The round trip that choose() assumes while none is measured: that of small messages in a data center by TCP.
inline constexpr double kAssumedRoundTripSeconds = 50e-6;
// The overhead of a message that choose() assumes while none is measured: that of TCP between two processes.
inline constexpr double kAssumedOverheadSeconds = 5e-6;

// Returns the network of a plan: the workers, and then the CPU summers that own partitions.
// - Without `known`, all are on one switch, each with the bandwidth of its member. A message and its answer take
//   `round_trip_seconds`.
// - Otherwise they are hosts of that topology. No host's link is faster than the bandwidth of its member, if that is
//   known; with JobNetwork::summers_at it is as fast. If `round_trip_seconds` is longer than the longest round trip of
//   the topology, the software of the hosts takes the difference, which each link of a host gets a quarter of.
// Each host for which `known` states no overhead of a message gets `overhead_seconds`. `summers_at`: the switch of each
// CPU summer, by its place among the summers of the plan, if JobNetwork::summers_at is set; where it is not given, the
// index of the summer is its place.
absl::StatusOr<topology::Network> network_of(const plan::Plan& plan, double round_trip_seconds, double overhead_seconds,
                                             const JobNetwork* known = nullptr,
                                             std::span<const uint32_t> summers_at = {});

// Returns the topology of that network for members that `known` has, without a measured round trip.
absl::StatusOr<topology::Topology> topology_of(const plan::Plan& plan, const JobNetwork& known,
                                               std::span<const uint32_t> summers_at);

// Returns the switch of the CPU summer with this index, by JobNetwork::summers_at, which must be set.
uint32_t switch_of(const JobNetwork& network, uint32_t summer);

// Returns whether a member of the plan is there and may own partitions, and so is in the network of the plan.
bool owns_partitions(const plan::Plan& plan, uint32_t member);

// Sets Tensor::schedule of each tensor that does not accumulate to its fastest strategy, best() of the candidates, and
// adds schedules that are new to plan.schedules. `tensors` are going to be added to the plan. Returns a line for the
// log, which names each strategy with its number of tensors and bytes, and what its rank map wins; empty if there is no
// tensor.
std::string choose(plan::Plan& plan, std::vector<plan::Tensor>& tensors, std::span<const Candidate> candidates,
                   const plan::Fleet& fleet);

// Returns the index of the schedule in plan.schedules, where it is added if it is new and there is room. None: summers.
std::optional<uint32_t> index_of(const std::optional<collective::Spec>& schedule, plan::Plan& plan);

}  // namespace gleaner::strategy
