#include "comm-lib/collective/schedules.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/collective/groups.h"

namespace gleaner::collective {

absl::Status Schedules::prepare(const plan::Plan& plan, uint32_t worker) {
  Programs programs = programs_;
  for (size_t i = programs.size(); i < plan.schedules.size(); ++i) {
    const plan::ScheduleParameters& parameters = plan.schedules[i];
    const auto end = plan.schedules.begin() + static_cast<ptrdiff_t>(i);
    const auto equal = std::find(plan.schedules.begin(), end, parameters);
    if (equal != end) {
      programs.push_back(programs[static_cast<size_t>(equal - plan.schedules.begin())]);
      continue;
    }
    const absl::StatusOr<Schedule> schedule =
        make_schedule({.algorithm = parameters.algorithm,
                       .ranks = plan.workers,
                       .stages = parameters.stages,
                       .radix = parameters.radix,
                       .groups = groups_of_sizes(parameters.group_sizes, plan.workers),
                       .global_chunks = parameters.global_chunks,
                       .local_chunks = parameters.local_chunks});
    if (!schedule.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("the plan of epoch ", plan.epoch, " has schedule ", i, " (",
                                                     parameters.algorithm, "), which ", plan.workers,
                                                     " workers can't execute: ", schedule.status().message()));
    }
    programs.push_back(std::make_shared<const Program>(*schedule, parameters.ranks, worker));
  }
  prepared_ = std::move(programs);
  prepared_epoch_ = plan.epoch;
  return absl::OkStatus();
}

absl::Status Schedules::apply(const plan::Plan& plan, uint32_t worker) {
  if (prepared_epoch_ != plan.epoch || prepared_.size() != plan.schedules.size()) {
    GLN_RETURN_IF_ERROR(prepare(plan, worker));
  }
  programs_ = std::move(prepared_);
  prepared_ = {};
  prepared_epoch_ = 0;
  of_tensor_.resize(plan.tensors.size());
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].schedule.has_value()) of_tensor_[i] |= Set{1} << *plan.tensors[i].schedule;
    used_ |= of_tensor_[i];
  }
  return absl::OkStatus();
}

}  // namespace gleaner::collective
