// The α–β cost of a schedule on a topology: a closed form that ignores how steps overlap. A step takes as long as its
// slowest message, and a message takes the latency of its path (α) and the time that the most loaded channel of its path
// needs for all bytes which cross it in this step (β). The cost is the sum over all steps.
// Source: Luo §5.2.1, with the load of shared links counted as in EFLOPS §V. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/topology/paths.h"

namespace gleaner::collective {

struct StepCost {
  double seconds = 0;
  uint32_t worst_channel = 0;  // the most loaded channel, by time
  uint32_t flows = 0;          // messages on that channel in this step
};

struct Cost {
  double seconds = 0;
  std::vector<StepCost> steps;
};

// `host_of[rank]` is the host with that rank; all differ. `bytes`: of the whole vector. InvalidArgument: the map does
// not have schedule.ranks different hosts of the topology.
absl::StatusOr<Cost> cost(const Schedule& schedule, const topology::Topology& topology, const topology::Paths& paths,
                          const std::vector<uint32_t>& host_of, uint64_t bytes);

}  // namespace gleaner::collective
