// run_job() simulates a step of a job whose workers sum one tensor by a schedule: the tensor is cut as the planner cuts
// it, and each rank has the limits of the runtime. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/topology/network.h"
#include "netsim/schedule_run.h"

namespace gleaner::netsim {

struct Job {
  uint64_t bytes = 0;            // of the tensor; a multiple of element_bytes
  uint32_t element_bytes = 4;    // of the tensor's type
  uint64_t partition_bytes = 0;  // the most that a partition has; 0: the tensor is one partition
  RankLimits limits;             // of each rank
  double frame_bytes = 0;        // Partitions::frame_bytes
  uint32_t partial_width = 1;    // Partitions::partial_width
};

// Returns the fewest partitions of at most `most_bytes` bytes, which differ by at most one element, as the planner
// makes them of a tensor with a schedule (common/plan/partitioner.h).
std::vector<double> equal_partitions(uint64_t bytes, uint32_t element_bytes, uint64_t most_bytes);

// Errors as of run_schedule().
absl::StatusOr<RunResult> run_job(const collective::Schedule& schedule, const topology::Network& network,
                                  const std::vector<uint32_t>& host_of, const Job& job,
                                  const Conditions& conditions = {}, const Progress& progress = nullptr);

}  // namespace gleaner::netsim
