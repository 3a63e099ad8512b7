// The plans of jobs that `gleaner sim` simulates: of one tensor of --bytes, for members on the hosts of a rank map.
// Errors are InvalidArgument and name the flag.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/collective/schedule.h"
#include "common/netsim/schedule_run.h"
#include "common/plan/plan.h"
#include "common/topology/network.h"

namespace gleaner::cli {

// A value of --partition-bytes: the size that the planner chooses.
inline constexpr char kPlannedPartitions[] = "plan";

// The texts of the flags.
struct TensorOfJob {
  std::string bytes;
  std::string partition_bytes;  // empty: as kPlannedPartitions
  DataType type = DataType::kFloat32;
};

// Returns the plan of a job whose owners sum the tensor, with the shares of `gleaner plan --topology`. `host_of` has
// the workers, then the summers.
absl::StatusOr<plan::Plan> plan_of_summers(const TensorOfJob& tensor, const topology::Topology& topology,
                                           const std::vector<uint32_t>& host_of, uint32_t workers);

// Returns how a job cuts the tensor that its workers sum by the schedule, and what limits each worker.
absl::StatusOr<netsim::Partitions> partitions_of_schedule(const TensorOfJob& tensor, const topology::Network& network,
                                                          const std::vector<uint32_t>& host_of,
                                                          const collective::Schedule& schedule);

}  // namespace gleaner::cli
