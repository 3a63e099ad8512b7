// What an attempt does once all its workers are there: summers beside them, a coordinator session, and the word on how
// it goes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/units.h"
#include "operator/reconcile/attempt.h"
#include "operator/reconcile/bandwidth.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/plan_object.h"
#include "operator/reconcile/summers.h"

namespace gleaner::reconcile {
namespace {

constexpr absl::Duration kReturnPatience = absl::Seconds(20);  // for a member whose stream broke to be back
constexpr absl::Duration kReportInterval = absl::Seconds(10);
constexpr absl::Duration kStallsApart = absl::Minutes(1);

absl::Status how_it_ended(const PodView& pod) {
  if (pod.phase == PodView::Phase::kSucceeded) return absl::OkStatus();
  if (!pod.exit.has_value()) return absl::UnavailableError(absl::StrCat("pod ", pod.name, " is lost"));
  return absl::AbortedError(absl::StrCat("pod ", pod.name, " ended with ", pod.exit->code));
}

}  // namespace

void Attempt::run() {
  if (all_running() && !is("Running")) {
    set("Running", true, "WorkersRunning", absl::StrCat("all ", job_.workers.replicas, " workers run"));
    set("Restarting", false, "WorkersRunning", "");
    note(false, "Running", absl::StrCat("all ", job_.workers.replicas, " workers run"));
  }
  if (!all_bound()) return;  // summers keep away from the workers' machines
  if (!place_summers()) return;
  keep_session();
  change_summers();
  report();
}

void Attempt::keep_session() {
  std::vector<const PodView*> summers = running_summers(observed_);
  if (is_settled(observed_)) summers = pods_of(planned_summers(observed_));
  coordinator::Options options;
  options.job = session_of(job_);
  options.workers = job_.workers.replicas;
  options.summers = wants_summers(job_) ? static_cast<uint32_t>(summers.size()) : 0;
  options.local_ranks = job_.workers.local_ranks;
  options.worker_bits_per_second = known_bits_per_second(observed_, workers_);
  // A job that goes on has its summers, and what they have, from its members.
  const bool goes_on = status_.epoch > 0;
  if (options.summers > 0 && !goes_on) options.summer_bits_per_second = known_bits_per_second(observed_, summers);
  options.partition_bytes = job_.communication.partition_bytes;
  options.start_timeout = job_.run_policy.start_deadline;
  options.return_timeout = kReturnPatience;
  decision_.session = std::move(options);
  decision_.may_resume = true;
  for (const PodView* pod : workers_) {
    if (pod != nullptr && pod->finished()) {
      decision_.ended.push_back({coordinator::Role::kWorker, pod->index, how_it_ended(*pod)});
    }
  }
}

void Attempt::report() {
  // After a failover a session knows nothing until its members are back: what is on record still holds.
  const bool behind = observed_.session.has_value() && observed_.session->epoch < status_.epoch;
  if (behind && is_settled(observed_)) {
    look_again(kReportInterval);
    return;
  }
  if (job_.workers.replicas > 1) {
    std::vector<Seated> summers = seated(running_summers(observed_));
    if (is_settled(observed_)) summers = planned_summers(observed_);
    if (has_begun()) summers = seated_summers(observed_);
    decision_.plan = make_plan_object(observed_, workers_, summers);
  }
  if (!observed_.session.has_value()) return;
  const coordinator::Summary& summary = observed_.session->summary;
  status_.epoch = observed_.session->epoch;
  report_stall(observed_.session->stall);
  if (summary.plan_bound_seconds > 0) status_.bound = format_seconds(summary.plan_bound_seconds);
  if (!summary.bandwidths_known && summary.tensors > 0) status_.bound = "unknown";
  if (summary.window.goodput_bytes_per_second > 0) {
    status_.goodput = absl::StrFormat("%.1f MB/s", summary.window.goodput_bytes_per_second / 1e6);
    status_.efficiency = coordinator::efficiency_text(summary.window.basis, summary.window.efficiency);
  }
  look_again(kReportInterval);
}

// A job whose steps are long may stall for a moment in many of them: not every one is news.
void Attempt::report_stall(const std::string& stall) {
  const types::Condition* before = types::find_condition(status_.conditions, "Stalled");
  if (stall.empty() || !is("Running")) {
    if (before != nullptr) set("Stalled", false, "StepsGoOn", "");
    return;
  }
  const bool is_news = before == nullptr || (!before->status && now_ - before->last_transition > kStallsApart);
  if (is_news) note(true, "Stalled", stall);
  set("Stalled", true, "RanksWait", stall);
}

}  // namespace gleaner::reconcile
