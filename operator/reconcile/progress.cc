#include "operator/reconcile/progress.h"

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/units.h"
#include "operator/reconcile/plan_object.h"
#include "operator/reconcile/summers.h"

namespace gleaner::reconcile {
namespace {

constexpr absl::Duration kReportInterval = absl::Seconds(10);
constexpr absl::Duration kStallsApart = absl::Minutes(1);

}  // namespace

ProgressDecision Progress::decide(StatusUpdate update) const {
  // After a change of leader a session has no data until its members have returned. Until then the status and the
  // ReductionPlan stay unchanged.
  const bool behind = observed_.session.has_value() && observed_.session->epoch < update.status.epoch;
  if (behind && is_settled(observed_)) {
    update.requeue_after(kReportInterval);
    return {std::move(update), std::nullopt};
  }
  std::optional<api::ReductionPlan> plan;
  if (observed_.job.workers.replicas > 1) {
    std::vector<SummerSeat> summers = seats_of(running_summers(observed_));
    if (is_settled(observed_)) summers = planned_summers(observed_);
    if (has_begun(observed_)) summers = session_summers(observed_);
    plan = make_plan_object(observed_, workers_.pods(), summers);
  }
  if (!observed_.session.has_value()) return {std::move(update), std::move(plan)};
  const coordinator::Summary& summary = observed_.session->summary;
  api::TrainingJobStatus& status = update.status;
  status.epoch = observed_.session->epoch;
  report_stall(observed_.session->stall, update);
  if (summary.plan_bound_seconds > 0) status.bound = format_seconds(summary.plan_bound_seconds);
  if (!summary.bandwidths_known && summary.tensors > 0) status.bound = "unknown";
  if (summary.window.goodput_bytes_per_second > 0) {
    status.goodput = absl::StrFormat("%.1f MB/s", summary.window.goodput_bytes_per_second / 1e6);
    status.efficiency = coordinator::efficiency_text(summary.window.basis, summary.window.efficiency);
  }
  update.requeue_after(kReportInterval);
  return {std::move(update), std::move(plan)};
}

// Reports a stall in the status and by an Event. A job with long steps may stall briefly in many of them, so there is
// at most one Event per kStallsApart.
void Progress::report_stall(const std::string& stall, StatusUpdate& update) const {
  const api::Condition* before = update.condition("Stalled");
  if (stall.empty() || !update.holds("Running")) {
    if (before != nullptr) update.set_condition("Stalled", false, "StepsGoOn", "");
    return;
  }
  const bool is_new = before == nullptr || (!before->status && observed_.now - before->last_transition > kStallsApart);
  if (is_new) update.add_event(true, "Stalled", stall);
  update.set_condition("Stalled", true, "RanksWait", stall);
}

}  // namespace gleaner::reconcile
