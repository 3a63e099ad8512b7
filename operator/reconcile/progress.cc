#include "operator/reconcile/progress.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/first_few.h"
#include "common/base/units.h"
#include "operator/reconcile/plan_object.h"
#include "operator/reconcile/strategy.h"
#include "operator/reconcile/summers.h"

namespace gleaner::reconcile {
namespace {

constexpr absl::Duration kReportInterval = absl::Seconds(10);
constexpr absl::Duration kEventsApart = absl::Minutes(1);
constexpr size_t kSummersNamed = 5;

// Returns a text that names the slow summers, with the figures of each. Empty: there is none.
std::string slow_summers(const coordinator::JobState& session) {
  std::vector<std::string> slow;
  for (const coordinator::MemberState& member : session.members) {
    if (!member.slow.empty()) slow.push_back(absl::StrCat(member.name, ": ", member.slow));
  }
  return first_few(slow, kSummersNamed, "; ");
}

}  // namespace

ProgressDecision Progress::decide(StatusUpdate update) const {
  // After a change of leader there is no session, and then one without data until its members have returned. Until then
  // the status and the ReductionPlan stay unchanged: a plan's epoch may not go back.
  const uint32_t epoch = observation_.session.has_value() ? observation_.session->epoch : 0;
  if (is_settled(observation_) && epoch < std::max(update.status.epoch, observation_.plan->spec.epoch)) {
    update.requeue_after(kReportInterval);
    return {std::move(update), std::nullopt};
  }
  std::optional<api::ReductionPlan> plan;
  if (observation_.job.workers.replicas > 1) {
    std::vector<SummerSeat> summers = seats_of(running_summers(observation_));
    if (is_settled(observation_)) summers = planned_summers(observation_);
    if (has_begun(observation_)) summers = session_summers(observation_);
    plan = make_plan_object(observation_, workers_.pods(), summers);
  }
  if (!observation_.session.has_value()) return {std::move(update), std::move(plan)};
  const coordinator::Summary& summary = observation_.session->summary;
  api::TrainingJobStatus& status = update.status;
  status.epoch = observation_.session->epoch;
  report_strategy(*observation_.session, update);
  report({"Stalled", "RanksWait", "StepsGoOn"}, observation_.session->stall, update);
  report({"SummerSlow", "StepsTakeLonger", "SummersKeepUp"}, slow_summers(*observation_.session), update);
  if (summary.plan_bound.seconds > 0) status.communication.bound = format_seconds(summary.plan_bound.seconds);
  if (!summary.bandwidths_known && summary.tensors > 0) status.communication.bound = "unknown";
  if (summary.window.goodput_bytes_per_second > 0) {
    status.communication.goodput = absl::StrFormat("%.1f MB/s", summary.window.goodput_bytes_per_second / 1e6);
    status.communication.efficiency = coordinator::efficiency_text(summary.window.basis, summary.window.efficiency);
  }
  update.requeue_after(kReportInterval);
  return {std::move(update), std::move(plan)};
}

// Reports a trouble, or its end (an empty message), in the status and by an Event. A trouble may come and go often, for
// example in every long step of a job that stalls briefly, so there is at most one Event per kEventsApart.
void Progress::report(const Trouble& trouble, const std::string& message, StatusUpdate& update) const {
  const api::Condition* before = update.condition(trouble.condition);
  if (message.empty() || !update.holds("Running")) {
    if (before != nullptr) update.set_condition(trouble.condition, false, trouble.reason_of_end, "");
    return;
  }
  const bool is_new =
      before == nullptr || (!before->status && observation_.now - before->last_transition > kEventsApart);
  if (is_new) update.add_event(true, trouble.condition, message);
  update.set_condition(trouble.condition, true, trouble.reason, message);
}

}  // namespace gleaner::reconcile
