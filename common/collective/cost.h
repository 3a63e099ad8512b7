// The α–β cost of a schedule on a topology: a closed form that ignores how steps overlap. A step takes as long as its
// slowest message, and a message takes the latency of its path (α) and the time that the most loaded channel of its
// path needs for all bytes which cross it in this step (β). The cost is the sum over all steps. A message has
// slice.count / chunks_per_block() of a block's bytes, times the *partial width* if the message has a partial sum,
// which is so if its receiver reduces. Partial sums of fp16 and bf16 travel as fp32, so their width is 2. Source: Luo
// §5.2.1, with the load of shared links counted as in EFLOPS §V. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/topology/network.h"

namespace gleaner::collective {

struct StepCost {
  double seconds = 0;
  uint32_t worst_channel = 0;  // the most loaded channel, by time
  uint32_t flows = 0;          // messages on that channel in this step; 0: the step has no message
};

struct Cost {
  double seconds = 0;
  std::vector<StepCost> steps;
};

// All messages from one rank to another within a step.
struct Transfer {
  uint32_t from = 0;    // a rank
  uint32_t to = 0;      // a rank
  uint32_t chunks = 0;  // those of partial sums times the partial width
  uint32_t messages = 0;
  bool operator==(const Transfer&) const = default;
};

// Steps with equal transfers. All steps of a ring are one pattern, and halving-doubling among 2^k ranks has k patterns.
struct StepPattern {
  std::vector<Transfer> transfers;  // by sender, then receiver
  std::vector<uint32_t> steps;
};

// Returns the patterns of a schedule, in the order of their first steps. InvalidArgument: as Messages::make().
absl::StatusOr<std::vector<StepPattern>> step_patterns(const Schedule& schedule, uint32_t partial_width = 1);

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
