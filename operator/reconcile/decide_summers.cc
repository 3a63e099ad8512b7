// Summers of an attempt: those that it begins with, and those that come and go while it runs. A job never restarts
// because of a summer.
//
// A summer's number only grows within an attempt (status.nextSummer): it is on record before the pod is made, so that
// operators who take over from each other make no two pods of one name, and none twice.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/attempt.h"
#include "operator/reconcile/bandwidth.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/plan_object.h"
#include "operator/reconcile/summers.h"

namespace gleaner::reconcile {
namespace {

// For summers to run; the job begins without those that don't.
constexpr absl::Duration kSummerPatience = absl::Seconds(20);
// For pods that were asked for to show; by then the API server has refused them.
constexpr absl::Duration kRefusalPatience = absl::Seconds(5);
constexpr absl::Duration kSoon = absl::Seconds(1);
// A bandwidth that is so much off is planned for anew.
constexpr double kBandwidthChange = 0.2;

bool is_alive(const PodView* pod) { return pod != nullptr && !pod->finished() && !pod->deletion.has_value(); }

const coordinator::MemberState* seat_of(const coordinator::JobState& session, uint32_t index) {
  for (const coordinator::MemberState& member : session.members) {
    if (member.role == coordinator::Role::kSummer && member.index == index) return &member;
  }
  return nullptr;
}

std::string named(const PodView& summer) {
  return absl::StrCat("summer-", summer.index, summer.node.empty() ? "" : absl::StrCat(" on ", summer.node));
}

}  // namespace

bool Attempt::has_begun() const {
  using Phase = coordinator::JobState::Phase;
  return observed_.session.has_value() && observed_.session->epoch > 0 && observed_.session->phase == Phase::kRunning;
}

// --- to begin with

// True once it is settled which summers the job begins with. It is written into the ReductionPlan.
bool Attempt::place_summers() {
  if (!wants_summers(job_) || is_settled(observed_)) return true;
  const std::vector<const PodView*> summers = summers_of_attempt(observed_);
  if (!summers.empty()) return begin_with_summers(summers);
  if (status_.next_summer > 0) {  // they were asked for, and are not there
    const absl::Time asked = status_.summers.last_change_time.value_or(absl::InfinitePast());
    if (now_ < asked + kRefusalPatience) {
      look_again(kSoon);
      return false;
    }
    note(true, "FewerSummers", "no summer is there: the job begins without");
    return true;
  }
  std::vector<std::string> nodes;
  for (const PodView* worker : workers_) nodes.push_back(worker->node);
  const auto chosen =
      choose_summers(job_, assumed_bits_per_second(observed_, workers_), observed_.candidates(nodes), settings_.worth);
  if (chosen.size() < job_.communication.summers.min) {
    note(false, "FewerSummers",
         absl::StrCat("machines to spare for ", chosen.size(), " of at least ", job_.communication.summers.min,
                      " summers: the job begins with what there is"));
  }
  if (chosen.empty()) return true;
  create_summers(chosen, "Beginning", "as many as shorten a step, by the model");
  look_again(kSoon);
  return false;
}

bool Attempt::begin_with_summers(const std::vector<const PodView*>& summers) {
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

// The coordinator waits for the summers that it was told of: for no more than there can be.
void Attempt::wait_for_those_alive() {
  using Phase = coordinator::JobState::Phase;
  const bool gathers = observed_.session.has_value() && observed_.session->phase == Phase::kGathering;
  if (!gathers || status_.epoch > 0 || !is_settled(observed_)) return;
  uint32_t joined = 0;
  bool all_alive = true, dead_joined = false;
  for (const Seated& summer : planned_summers(observed_)) {
    const coordinator::MemberState* seat = seat_of(*observed_.session, summer.index);
    const bool is_here = seat != nullptr && seat->joined;
    all_alive = all_alive && is_alive(summer.pod);
    dead_joined = dead_joined || (is_here && !is_alive(summer.pod));
    joined += is_here && is_alive(summer.pod);
  }
  if (all_alive) return;
  look_again(kSoon);
  // Those that come later are let in once the job has begun.
  if (!dead_joined) decision_.session_summers = joined;
}

// --- under way

void Attempt::create_summers(const std::vector<placement::Candidate>& machines, const std::string& cause,
                             const std::string& why) {
  // Those that an operator made which did not keep this record are not made again.
  for (const PodView* pod : summers_of_attempt(observed_)) {
    status_.next_summer = std::max(status_.next_summer, pod->index + 1);
  }
  std::string names;
  for (const placement::Candidate& machine : machines) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", "summer-", status_.next_summer, " on ", machine.node);
    decision_.create_summers.push_back(summer_pod(job_, status_.next_summer++, machine, settings_));
  }
  status_.summers.last_change = absl::StrCat(names, " added: ", cause, ", ", why);
  status_.summers.last_change_time = now_;
  note(false, "SummerAdded", status_.summers.last_change, cause);
}

void Attempt::change_summers() {
  if (!wants_summers(job_)) return;
  if (!has_begun()) return wait_for_those_alive();
  std::vector<const PodView*> alive;
  for (const PodView* pod : summers_of_attempt(observed_)) {
    if (pod->finished()) {
      bury(*pod);
    } else if (!pod->deletion.has_value()) {  // else it leaves by itself, or its node does not answer any more
      alive.push_back(pod);
    }
  }
  for (const Seated& summer : planned_summers(observed_)) {
    if (summer.pod != nullptr || !summer.had_pod) continue;
    decision_.ended.push_back({coordinator::Role::kSummer, summer.index,
                               absl::UnavailableError(absl::StrCat("the pod of summer-", summer.index, " is gone"))});
  }
  follow_wish(alive);
  follow_bandwidths();
  report_summers();
}

void Attempt::bury(const PodView& summer) {
  const bool well = summer.phase == PodView::Phase::kSucceeded;
  std::string how = absl::StrCat(named(summer), well ? " has left" : " has failed");
  if (!well && !summer.evicted_by.empty()) absl::StrAppend(&how, ": taken by the cluster, ", summer.evicted_by);
  if (!well && summer.exit.has_value()) absl::StrAppend(&how, ": it ended with ", summer.exit->code);
  decision_.ended.push_back(
      {coordinator::Role::kSummer, summer.index, well ? absl::OkStatus() : absl::UnavailableError(how)});
  if (!summer.deletion.has_value() && !well) {
    note(true, "SummerLost", absl::StrCat(how, "; the job goes on"), summer.evicted_by.empty() ? "Failed" : "Evicted");
  }
  if (well && !was_told(summer)) {
    note(false, "SummerLeft", absl::StrCat(how, " by itself; the job goes on"), "OwnersNeedIt");
  }
  remove(summer);
}

bool Attempt::was_told(const PodView& summer) const {
  if (summer.deletion.has_value()) return true;
  if (!observed_.wish.has_value()) return false;
  const std::vector<autoscale::Removal>& removals = observed_.wish->verdict.remove;
  return std::any_of(removals.begin(), removals.end(), [&](const auto& each) { return each.index == summer.index; });
}

void Attempt::follow_wish(const std::vector<const PodView*>& alive) {
  if (!observed_.wish.has_value() || observed_.wish->attempt != job_.status.attempt) return;
  const Wish& wish = *observed_.wish;
  status_.summers.wanted = wish.verdict.wanted;
  status_.summers.reason = std::string(autoscale::to_string(wish.verdict.code));
  status_.summers.message = wish.verdict.why;
  for (const autoscale::Removal& removal : wish.verdict.remove) {
    const auto pod =
        std::find_if(alive.begin(), alive.end(), [&](const PodView* each) { return each->index == removal.index; });
    if (pod != alive.end()) remove_summer(**pod, removal);
  }
  // Once: the number that the wish was made for is used up with it.
  if (wish.verdict.add.has_value() && wish.next_summer == status_.next_summer) {
    create_summers({{wish.verdict.add->node, wish.verdict.add->bits_per_second}}, status_.summers.reason,
                   wish.verdict.why);
  }
}

// The plan does without it first; then it ends by itself, and its pod goes.
void Attempt::remove_summer(const PodView& summer, const autoscale::Removal& removal) {
  const std::vector<uint32_t>& overdue = observed_.wish->overdue;
  const bool late = std::find(overdue.begin(), overdue.end(), summer.index) != overdue.end();
  const std::string cause(autoscale::to_string(removal.code));
  const std::string what = absl::StrCat(named(summer), " removed: ", cause, ", ", removal.why);
  const coordinator::MemberState* seat = seat_of(*observed_.session, summer.index);
  if (status_.summers.last_change != what) {
    status_.summers.last_change = what;
    status_.summers.last_change_time = now_;
  }
  if (seat != nullptr && seat->joined && !late) {
    decision_.release_summers.push_back({summer.index, {false, "SummerRemoved", what, cause}});
    look_again(kSoon);
    return;
  }
  if (!late) note(false, "SummerRemoved", what, cause);
  remove(summer);
}

void Attempt::follow_bandwidths() {
  for (const coordinator::MemberState& member : observed_.session->members) {
    const bool is_summer = member.role == coordinator::Role::kSummer;
    const PodView* pod = nullptr;
    if (!is_summer && member.index < workers_.size()) pod = workers_[member.index];
    if (is_summer) {
      for (const PodView* each : summers_of_attempt(observed_)) pod = each->index == member.index ? each : pod;
    }
    if (!is_alive(pod) || !member.joined || member.bits_per_second <= 0) continue;
    double known = member_bits_per_second(observed_, *pod);
    if (is_summer && observed_.wish.has_value()) {
      for (const auto& [index, spare] : observed_.wish->spare_bits_per_second) {
        if (index == member.index && spare >= 1) known = known > 0 ? std::min(known, spare) : spare;
      }
    }
    if (known <= 0 || std::abs(known - member.bits_per_second) <= kBandwidthChange * member.bits_per_second) continue;
    decision_.bandwidths.push_back({member.role, member.index, known});
  }
}

void Attempt::report_summers() { status_.summers.had = observed_.session->summary.summers; }

}  // namespace gleaner::reconcile
