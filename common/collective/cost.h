// The α–β cost of a schedule on a topology: the time at which its last message arrives, by longest_path.h. A message
// takes the latency of its path (α), the time that the most loaded channel of its path needs for the bytes which cross
// it (β), and the overhead of the processors at both ends (topology::Host). A message has slice.count /
// chunks_per_block() of a block's bytes, times the partial width (step_patterns.h) if it has a partial sum. Source: Luo
// §5.2.1, with the load of shared links counted as in EFLOPS §V. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/collective/step_patterns.h"
#include "common/topology/network.h"

namespace gleaner::collective {

// The cost of a step by itself, if all its messages started together. Steps overlap, so these are no parts of the whole
// cost.
struct StepCost {
  double seconds = 0;          // of the slowest message
  uint32_t worst_channel = 0;  // the most loaded channel, by time
  uint32_t flows = 0;          // messages on that channel in this step; 0: the step has no message
};

struct Cost {
  double seconds = 0;
  std::vector<StepCost> steps;
};

// Returns the overhead of each rank's host, for LongestPath; empty if all are 0. `host_of[rank]` is the rank's host.
std::vector<double> overheads_of(const topology::Topology& topology, const std::vector<uint32_t>& host_of);

// Returns the flow that cost models and simulators pass to topology::Paths::append_path() for all messages between two
// hosts, so that they agree on the path.
constexpr uint64_t flow_between(uint32_t from_host, uint32_t to_host) { return (uint64_t{from_host} << 32) | to_host; }

// `host_of[rank]` is the host with that rank; all differ. `bytes`: of a block. InvalidArgument: as
// Messages::make(), or the map does not have schedule.ranks different hosts of the topology.
absl::StatusOr<Cost> cost(const Schedule& schedule, const topology::Network& network,
                          const std::vector<uint32_t>& host_of, uint64_t bytes);

// Returns the cost of a schedule that has these step_patterns(), which say the partial width. InvalidArgument: the map,
// as above.
absl::StatusOr<Cost> cost(const Schedule& schedule, const std::vector<StepPattern>& patterns,
                          const topology::Network& network, const std::vector<uint32_t>& host_of, uint64_t bytes);

}  // namespace gleaner::collective
