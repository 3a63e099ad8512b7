#include "operator/reconcile/summer_scaling.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/plan_object.h"
#include "operator/reconcile/summers.h"

namespace gleaner::reconcile {
namespace {

std::string summer_on_node(const PodView& summer) {
  return absl::StrCat("summer-", summer.index, summer.node.empty() ? "" : absl::StrCat(" on ", summer.node));
}

}  // namespace

ScalingDecision SummerScaling::decide(StatusUpdate update) const {
  ScalingDecision decision{std::move(update), {}, {}, {}, {}};
  std::vector<const PodView*> alive;
  for (const PodView* pod : summers_of_attempt(observation_)) {
    if (pod->finished()) {
      report_ended_summer(*pod, decision);
    } else if (!pod->deletion.has_value()) {  // otherwise the summer is leaving, or its node does not answer
      alive.push_back(pod);
    }
  }
  report_vanished_summers(decision);
  apply_scaling(alive, decision);
  decision.update.status.summers.had = observation_.session->summary.summers;
  return decision;
}

// Reports a summer whose pod has ended to the session, and deletes its pod.
void SummerScaling::report_ended_summer(const PodView& summer, ScalingDecision& decision) const {
  const bool cleanly = summer.phase == PodView::Phase::kSucceeded;
  std::string how = absl::StrCat(summer_on_node(summer), cleanly ? " has left" : " has failed");
  const PodView::Ending& ending = summer.ending;
  if (!cleanly && !ending.evicted_by.empty()) absl::StrAppend(&how, ": ended by the cluster, ", ending.evicted_by);
  if (!cleanly && !ending.refused_by.empty()) absl::StrAppend(&how, ": ended by the kubelet, ", ending.refused_by);
  if (!cleanly && ending.exit.has_value()) absl::StrAppend(&how, ": it ended with ", ending.exit->code);
  decision.ended.push_back(
      {coordinator::Role::kSummer, summer.index, cleanly ? absl::OkStatus() : absl::UnavailableError(how)});
  if (!summer.deletion.has_value() && !cleanly) {
    decision.update.add_event(true, "SummerLost", absl::StrCat(how, "; the job goes on"),
                              ending.evicted_by.empty() && ending.refused_by.empty() ? "Failed" : "Evicted");
  }
  if (cleanly && !was_released(summer)) {
    decision.update.add_event(false, "SummerLeft", absl::StrCat(how, " by itself; the job goes on"), "OwnersNeedIt");
  }
  add_removal(summer, decision.remove);
}

// Reports summers of the plan whose pods no longer exist.
void SummerScaling::report_vanished_summers(ScalingDecision& decision) const {
  for (const SummerSeat& summer : planned_summers(observation_)) {
    if (summer.pod != nullptr || !summer.had_pod) continue;
    decision.ended.push_back({coordinator::Role::kSummer, summer.index,
                              absl::UnavailableError(absl::StrCat("the pod of summer-", summer.index, " is gone"))});
  }
}

bool SummerScaling::was_released(const PodView& summer) const {
  if (summer.deletion.has_value()) return true;
  if (!observation_.scaling.has_value()) return false;
  const std::vector<autoscale::Removal>& removals = observation_.scaling->verdict.remove;
  return std::any_of(removals.begin(), removals.end(), [&](const auto& each) { return each.index == summer.index; });
}

void SummerScaling::apply_scaling(const std::vector<const PodView*>& alive, ScalingDecision& decision) const {
  if (!observation_.scaling.has_value() || observation_.scaling->attempt != job_.status.attempt) return;
  const ScalingRequest& request = *observation_.scaling;
  const autoscale::Verdict& verdict = request.verdict;
  api::TrainingJobStatus& status = decision.update.status;
  status.summers.wanted = verdict.wanted;
  status.summers.reason = std::string(autoscale::to_string(verdict.code));
  status.summers.message = verdict.why;
  for (const autoscale::Removal& removal : verdict.remove) {
    const auto pod =
        std::find_if(alive.begin(), alive.end(), [&](const PodView* each) { return each->index == removal.index; });
    if (pod != alive.end()) remove_summer(**pod, removal, decision);
  }
  // Adds it once: creating a summer advances next_summer, so the same request does not match again.
  const bool paused =
      observation_.summers_refused.has_value() && observation_.summers_refused->pause > absl::ZeroDuration();
  if (verdict.add.has_value() && request.next_summer == status.next_summer && !paused) {
    decision.create = add_summers(observation_, settings_, {{verdict.add->node, verdict.add->bits_per_second}},
                                  status.summers.reason, verdict.why, decision.update);
  }
}

// Removes a summer. First the session's next plan leaves the summer out; then the summer ends and its pod is deleted.
// The pod of a summer that is overdue or not in the session is deleted immediately.
void SummerScaling::remove_summer(const PodView& summer, const autoscale::Removal& removal,
                                  ScalingDecision& decision) const {
  const std::vector<uint32_t>& overdue = observation_.scaling->overdue;
  const bool late = std::find(overdue.begin(), overdue.end(), summer.index) != overdue.end();
  const std::string cause(autoscale::to_string(removal.code));
  const std::string change = absl::StrCat(summer_on_node(summer), " removed: ", cause, ", ", removal.why);
  api::SummersStatus& status = decision.update.status.summers;
  if (status.last_change != change) {
    status.last_change = change;
    status.last_change_time = observation_.now;
  }
  const coordinator::MemberState* member = find_summer_member(*observation_.session, summer.index);
  if (member != nullptr && member->joined && !late) {
    decision.release.push_back({summer.index, {false, "SummerRemoved", change, cause}});
    decision.update.requeue_after(kSoon);
    return;
  }
  if (!late) decision.update.add_event(false, "SummerRemoved", change, cause);
  add_removal(summer, decision.remove);
}

}  // namespace gleaner::reconcile
