// ScheduleCuts keeps what each schedule of a job's plans does with a partition. The size of new partitions follows from
// it (plan::PartitionOptions::schedules). Pure. Not thread safe.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/collective/spec.h"
#include "common/plan/partitioner.h"
#include "common/plan/plan.h"

namespace gleaner::strategy {

plan::ScheduleCut cut_of(const collective::Schedule& schedule);

class ScheduleCuts {
 public:
  // Returns the cuts by schedule of the plan. InvalidArgument: a schedule does not serve the plan's workers.
  absl::StatusOr<std::vector<plan::ScheduleCut>> of(const plan::Plan& plan);

 private:
  std::vector<std::pair<collective::Spec, plan::ScheduleCut>> known_;  // by schedule of the last plan
};

}  // namespace gleaner::strategy
