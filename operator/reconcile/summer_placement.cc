#include "operator/reconcile/summer_placement.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/text_table.h"
#include "operator/reconcile/bandwidth.h"
#include "operator/reconcile/plan_object.h"
#include "operator/reconcile/summer_choice.h"
#include "operator/reconcile/summers.h"

namespace gleaner::reconcile {
namespace {

// A job begins without summers that don't run within this time.
constexpr absl::Duration kSummerPatience = absl::Seconds(20);
// If no summer pod exists within this time, an earlier operator has met a refusal of the API server.
constexpr absl::Duration kRefusalPatience = absl::Seconds(5);

PlacementDecision settled(StatusUpdate update, bool is_settled) { return {std::move(update), {}, {}, is_settled}; }

// Returns whether the job is deleted, suspended or finished, so that it gets no more summers.
bool is_over(const api::TrainingJob& job) {
  const StatusUpdate status(job, absl::InfinitePast());
  return job.meta.deletion_time.has_value() || job.run_policy.suspend || status.holds("Succeeded") ||
         status.holds("Failed");
}

}  // namespace

bool needs_candidates(const Observation& observation) {
  const api::TrainingJob& job = observation.job;
  if (!wants_summers(job) || job.status.next_summer > 0 || is_settled(observation) || is_over(job)) return false;
  return summers_of_attempt(observation).empty() && Workers(observation).all_bound();
}

PlacementDecision SummerPlacement::decide(StatusUpdate update) const {
  if (!wants_summers(job_) || is_settled(observation_)) return settled(std::move(update), true);
  const std::vector<const PodView*> summers = summers_of_attempt(observation_);
  if (!summers.empty()) return wait_for(summers, std::move(update));
  return update.status.next_summer > 0 ? wait_for_pods(std::move(update)) : place(std::move(update));
}

PlacementDecision SummerPlacement::wait_for(const std::vector<const PodView*>& summers, StatusUpdate update) const {
  const std::vector<const PodView*> running = running_summers(observation_);
  if (running.size() == summers.size()) return settled(std::move(update), true);
  const absl::Time due = summers.front()->created + kSummerPatience;
  const bool any_ended =
      std::any_of(summers.begin(), summers.end(), [](const PodView* pod) { return pod->finished(); });
  if (observation_.now < due && !any_ended) {
    update.requeue_after(std::min(due - observation_.now, absl::Seconds(2)));
    return settled(std::move(update), false);
  }
  update.add_event(
      true, "FewerSummers",
      absl::StrCat(summers.size() - running.size(), " of ", counted(summers.size(), "summer"), " did not start within ",
                   absl::FormatDuration(kSummerPatience), ": the job begins without them"));
  PlacementDecision decision = settled(std::move(update), true);
  for (size_t j = running.size(); j < summers.size(); ++j) add_removal(*summers[j], decision.remove);
  return decision;
}

// Decides for an attempt whose summers were requested, and of which no pod exists.
PlacementDecision SummerPlacement::wait_for_pods(StatusUpdate update) const {
  if (observation_.summers_refused.has_value()) return settled(std::move(update), true);
  const absl::Time requested = update.status.summers.last_change_time.value_or(absl::InfinitePast());
  if (observation_.now < requested + kRefusalPatience) {
    update.requeue_after(kSoon);
    return settled(std::move(update), false);
  }
  update.add_event(true, "FewerSummers", "no summer pod exists: the job begins without summers");
  return settled(std::move(update), true);
}

PlacementDecision SummerPlacement::place(StatusUpdate update) const {
  if (!observation_.candidates.has_value()) {
    update.requeue_after(kSoon);
    return settled(std::move(update), false);
  }
  const uint32_t least = job_.communication.summers.min;
  WorkerMachines workers{{assumed_bits_per_second(observation_, workers_.pods()), {}, planned_push_ratio(observation_)},
                         nodes_of(workers_.pods())};
  const std::vector<placement::Candidate> chosen =
      choose_summers(job_, *observation_.fabric, workers, *observation_.candidates, settings_.min_gain);
  if (chosen.size() < least) {
    update.add_event(false, "FewerSummers",
                     absl::StrCat("there are suitable machines for ", chosen.size(), " of at least ",
                                  counted(least, "summer"), ": the job begins with these"));
  }
  if (chosen.empty()) return settled(std::move(update), true);
  CreateSummers create =
      add_summers(observation_, settings_, chosen, "Beginning", "as many as shorten a step, by the model", update);
  update.requeue_after(kSoon);
  return {std::move(update), std::move(create), {}, false};
}

}  // namespace gleaner::reconcile
