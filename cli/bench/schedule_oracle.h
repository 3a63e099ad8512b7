// ScheduleOracle computes the sums that `gleaner bench push-pull` must return for a tensor that a schedule sums
// (docs/schedules.md). Their bits follow from the schedule, the workers' ranks in it and the cut into partitions.
//
// The oracle generates the data of every rank (data.h), sums the local ranks of each worker in order, and
// executes the schedule in this process (common/collective/oracle.h), all partition by partition.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/bench/oracle.h"
#include "common/base/bytes.h"
#include "common/collective/schedule.h"
#include "common/collective/spec.h"
#include "common/plan/schedule_name.h"

namespace gleaner::cli {

// How a job sums a tensor, as gln_get_tensor_plan() tells it.
struct TensorPlan {
  std::optional<collective::Spec> schedule;  // none: the owners of partitions sum them
  std::vector<uint32_t> partition_bytes;     // of each partition, in order
  uint64_t from = 0;                         // number of the first push_pull that is summed so

  std::string algorithm() const { return schedule.has_value() ? schedule->algorithm : plan::kSummersStrategy; }
};

// InvalidArgument: the text is not what gln_get_tensor_plan() writes.
absl::StatusOr<TensorPlan> parse_tensor_plan(const std::string& text);

class ScheduleOracle {
 public:
  // Requires a plan with a schedule.
  static absl::StatusOr<ScheduleOracle> make(uint64_t seed, uint32_t workers, uint32_t local_ranks,
                                             const TensorPlan& plan);

  // Compares `got`, the sum of a tensor whose first element has the number `first`, with the expected sum at `step`,
  // bit by bit. Returns the first difference; nothing if there is none. InvalidArgument: the partitions do not add up
  // to the tensor.
  absl::StatusOr<std::optional<Mismatch>> check(DataType type, uint64_t step, uint64_t first, ConstBytes got) const;

 private:
  ScheduleOracle(uint64_t seed, uint32_t workers, uint32_t local_ranks, const TensorPlan& plan,
                 collective::Schedule schedule, const kernels::Kernels& scalar);
  std::vector<std::byte> contribution(DataType type, uint64_t step, uint64_t first, size_t bytes,
                                      uint32_t worker) const;

  uint64_t seed_;
  uint32_t workers_;
  uint32_t local_ranks_;
  TensorPlan plan_;
  collective::Schedule schedule_;
  kernels::Kernels scalar_;
};

}  // namespace gleaner::cli
