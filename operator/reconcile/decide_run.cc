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

constexpr absl::Duration kSummerPatience =
    absl::Seconds(20);  // for summers to run; the job begins without those that don't
constexpr absl::Duration kReturnPatience = absl::Seconds(20);  // for a member whose stream broke to be back
constexpr absl::Duration kReportInterval = absl::Seconds(10);

bool is_of_attempt(const std::optional<types::ReductionPlan>& plan, uint32_t attempt) {
  return plan.has_value() && plan->spec.attempt == attempt && !plan->spec.members.empty();
}

std::vector<std::string> nodes_of(const std::vector<const PodView*>& pods) {
  std::vector<std::string> nodes;
  nodes.reserve(pods.size());
  for (const PodView* pod : pods) nodes.push_back(pod->node);
  return nodes;
}

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
  report();
}

// True once it is settled which summers take part. It is written into the ReductionPlan: no summer is added afterwards.
bool Attempt::place_summers() {
  if (!wants_summers(job_) || is_of_attempt(observed_.plan, job_.status.attempt)) return true;
  std::vector<const PodView*> summers;
  for (const PodView* pod : members_of_attempt(observed_, kSummer, job_.communication.summers.max)) {
    if (pod != nullptr) summers.push_back(pod);
  }
  if (summers.empty()) {
    const auto chosen =
        choose_summers(job_, assumed_bits_per_second(observed_, workers_), observed_.candidates(nodes_of(workers_)));
    if (chosen.size() < job_.communication.summers.min) {
      note(false, "FewerSummers",
           absl::StrCat("machines to spare for ", chosen.size(), " of at least ", job_.communication.summers.min,
                        " summers: the job runs with what there is"));
    }
    for (uint32_t j = 0; j < chosen.size(); ++j) decision_.create.push_back(summer_pod(job_, j, chosen[j], settings_));
    if (!chosen.empty()) look_again(absl::Seconds(1));
    return chosen.empty();
  }
  const std::vector<const PodView*> running = running_summers(observed_);
  if (running.size() == summers.size()) return true;
  const absl::Time due = summers.front()->created + kSummerPatience;
  const bool hopeless = std::any_of(summers.begin(), summers.end(), [](const PodView* pod) { return pod->finished(); });
  if (now_ < due && !hopeless) {
    look_again(std::min(due - now_, absl::Seconds(2)));
    return false;
  }
  for (size_t j = running.size(); j < summers.size(); ++j) remove(*summers[j]);
  note(true, "FewerSummers",
       absl::StrCat(summers.size() - running.size(), " of ", summers.size(), " summers do not run after ",
                    absl::FormatDuration(kSummerPatience), ": the job begins without them"));
  return true;
}

void Attempt::keep_session() {
  const bool decided = is_of_attempt(observed_.plan, job_.status.attempt);
  std::vector<const PodView*> summers = running_summers(observed_);
  if (decided) {
    summers = members_of_attempt(observed_, kSummer,
                                 static_cast<uint32_t>(observed_.plan->spec.members.size()) - job_.workers.replicas);
  }
  coordinator::Options options;
  options.job = session_of(job_);
  options.workers = job_.workers.replicas;
  options.summers = wants_summers(job_) ? static_cast<uint32_t>(summers.size()) : 0;
  options.local_ranks = job_.workers.local_ranks;
  options.worker_bits_per_second = assumed_bits_per_second(observed_, workers_);
  if (options.summers > 0) options.summer_bits_per_second = assumed_bits_per_second(observed_, summers);
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
  if (behind && is_of_attempt(observed_.plan, job_.status.attempt)) {
    look_again(kReportInterval);
    return;
  }
  if (job_.workers.replicas > 1) {
    std::vector<const PodView*> members = workers_;
    const std::vector<const PodView*> summers =
        is_of_attempt(observed_.plan, job_.status.attempt)
            ? members_of_attempt(observed_, kSummer,
                                 static_cast<uint32_t>(observed_.plan->spec.members.size()) - job_.workers.replicas)
            : running_summers(observed_);
    members.insert(members.end(), summers.begin(), summers.end());
    decision_.plan = make_plan_object(observed_, members);
  }
  if (!observed_.session.has_value()) return;
  const coordinator::Summary& summary = observed_.session->summary;
  status_.epoch = observed_.session->epoch;
  if (summary.bound_seconds > 0) status_.bound = format_seconds(summary.bound_seconds);
  if (summary.goodput_bytes_per_second > 0) {
    status_.goodput = absl::StrFormat("%.1f MB/s", summary.goodput_bytes_per_second / 1e6);
    status_.efficiency = absl::StrFormat("%.1f %%", 100 * summary.efficiency);
  }
  look_again(kReportInterval);
}

}  // namespace gleaner::reconcile
