// Counts flows that share a channel. A flow is what one rank sends to another in one step, on its shortest path; all
// flows of a step count as simultaneous. A *conflict* is a pair of a step and a channel that carries more than one flow
// in this step. EFLOPS §V calls it link sharing: the flows of a conflict divide the channel's bandwidth, so the step
// takes longer. A channel is one direction of a link, so the two messages of an exchange are no conflict.
//
// Conflicts between switches are those that a better rank map may avoid. Conflicts at a host's own link come from the
// algorithm, for example from BCube, in which a rank sends to several peers in one step.
//
// Example: in a star every rank has a link of its own, so a ring has no conflict. In two racks of two hosts, the ring
// that visits the racks in turn (0 2 1 3) sends two flows through each uplink in every step. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/ranks/rank_map.h"
#include "common/topology/network.h"

namespace gleaner::ranks {

struct ChannelFlows {
  uint32_t channel = 0;
  uint32_t flows = 0;  // >= 1
  bool operator==(const ChannelFlows&) const = default;
};

struct Flows {
  // Returns the channels that carry a flow in a step, ordered by channel.
  const std::vector<ChannelFlows>& of_step(uint32_t step) const { return patterns[pattern_of_step[step]]; }

  std::vector<std::vector<ChannelFlows>> patterns;  // one for each collective::StepPattern
  std::vector<uint32_t> pattern_of_step;
};

// Counts the flows of each step and channel. InvalidArgument: the map does not fit (check_map()), or a
// send of the schedule has no receive.
absl::StatusOr<Flows> count_flows(const collective::Schedule& schedule, const topology::Network& network,
                                  const RankMap& host_of);

struct Conflicts {
  uint64_t total = 0;             // over all steps
  uint64_t between_switches = 0;  // those of `total` whose channel joins two switches
  uint32_t most_flows = 0;        // on one channel in one step
};
Conflicts count_conflicts(const Flows& flows, const topology::Topology& topology);

}  // namespace gleaner::ranks
