#include "coordinator/core/step_monitor.h"

namespace gleaner::coordinator {

void StepMonitor::on_plan(const plan::Plan& plan, std::span<const uint32_t> summers_at, absl::Duration now) {
  efficiency_.on_plan(plan, summers_at);
  slow_summers_.on_plan(plan, now);
  step_times_.on_plan(plan.epoch, now);
}

// Local rank 0 of each worker measures.
bool StepMonitor::have_measured() const {
  for (uint32_t rank = 0; rank < efficiency_.ranks(); rank += local_ranks_) {
    if (efficiency_.latest(rank).overhead_seconds == 0) return false;
  }
  return true;
}

// SlowSummers takes the reports of one rank of each worker, its local rank 0.
void StepMonitor::on_report(uint32_t rank, const Report& report, bool judges_summers, absl::Duration now,
                            Actions& actions) {
  efficiency_.on_report(rank, report, now);
  step_times_.on_report(rank, report, now);
  if (judges_summers && rank % local_ranks_ == 0) slow_summers_.on_report(rank / local_ranks_, report, now, actions);
}

std::optional<Failure> StepMonitor::check_waiting_ranks(std::optional<absl::Duration> first_leave_at,
                                                        absl::Duration now, Actions& actions) {
  return first_leave_at.has_value() ? deadlocks_.check_leavers(*first_leave_at, now)
                                    : deadlocks_.check_stalls(now, actions);
}

}  // namespace gleaner::coordinator
