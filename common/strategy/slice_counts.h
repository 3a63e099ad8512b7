// SliceCounts keeps into how many slices of mean size each schedule of a job's plans cuts a partition. The size of new
// partitions follows from it (plan::PartitionOptions::slices). Pure. Not thread safe.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"

namespace gleaner::strategy {

class SliceCounts {
 public:
  // Returns the numbers by schedule of the plan. InvalidArgument: a schedule does not serve the plan's workers.
  absl::StatusOr<std::vector<double>> of(const plan::Plan& plan);

 private:
  std::vector<std::pair<plan::ScheduleParameters, double>> known_;  // by schedule of the last plan
};

}  // namespace gleaner::strategy
