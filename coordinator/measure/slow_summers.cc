#include "coordinator/measure/slow_summers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/backoff.h"
#include "common/base/faults.h"
#include "common/base/units.h"

namespace gleaner::coordinator {
namespace {

std::string figures(double with, double without) {
  return absl::StrCat("a step takes ", format_seconds(with), " with it and ", format_seconds(without), " without it");
}

}  // namespace

void SlowSummers::on_plan(const plan::Plan& plan, absl::Duration now) {
  windows_.on_plan(plan);
  std::erase_if(summers_, [&](const auto& entry) {
    const auto& [member, summer] = entry;
    return member >= plan.members.size() || !plan.members[member].is_here() ||
           plan.members[member].since != summer.since;
  });
  for (uint32_t member = plan.workers; member < plan.members.size(); ++member) {
    const plan::Member& what = plan.members[member];
    if (!what.on_standby || summers_.contains(member)) continue;
    Summer& summer = summers_[member];
    summer = {.since = what.since, .state = State::kSlow, .backoff = kFirstBackoff, .until = now + kFirstBackoff};
    set_standby(member, summer, true);
  }
  for (auto& [member, summer] : summers_) {
    const bool had_share = summer.has_share;
    summer.has_share = !plan.members[member].on_standby;
    summer.late_windows = summer.trial_windows = 0;
    if (summer.state == State::kTriedAgain && summer.has_share && !had_share) summer.until = now + kGoodPeriod;
  }
}

void SlowSummers::on_report(uint32_t worker, const Report& report, absl::Duration now, Actions& actions) {
  const std::optional<LatenessWindows::Window> window = windows_.on_report(worker, report, now);
  if (!window.has_value()) return;
  judge_trials(*window, now, actions);
  watch(*window, now, actions);
}

// Begins the trials of watched summers, and ends the trust in summers that are tried again.
void SlowSummers::watch(const LatenessWindows::Window& window, absl::Duration now, Actions& actions) {
  std::map<uint32_t, uint32_t> before;  // late windows up to now, by member
  for (auto& [member, summer] : summers_) before[member] = std::exchange(summer.late_windows, 0);
  const bool may_begin = !is_any_on_trial();
  for (const LatenessWindows::LateSummer& late : window.late) {
    const Seat& seat = roster_[roster_.seat_of_member(late.member)];
    Summer& summer = summers_.try_emplace(late.member, Summer{.since = seat.since}).first->second;
    if (!is_here(late.member, summer)) continue;
    if (!summer.has_share || seat.on_standby) continue;  // the plan that has it on standby is not in force yet
    summer.late_windows = before[late.member] + 1;
    summer.late_seconds = late.seconds;
    summer.step_seconds_with = window.step_seconds;
    if (summer.state == State::kTriedAgain) {
      if (window.step_seconds < summer.step_seconds_without + late.seconds / 2) continue;
      condemn(late.member, summer, now, actions);
    } else if (may_begin && summer.late_windows >= kLateWindows && now >= summer.until) {
      summer.state = State::kTrial;
      set_standby(late.member, summer, true);
      actions.notes.push_back(absl::StrCat(name(late.member), " answers late, by ", format_seconds(late.seconds),
                                           " of a step's ", format_seconds(window.step_seconds),
                                           "; it gets no partitions on trial, in case steps become shorter"));
    }
  }
}

void SlowSummers::judge_trials(const LatenessWindows::Window& window, absl::Duration now, Actions& actions) {
  for (auto& [member, summer] : summers_) {
    if (summer.has_share || !is_here(member, summer)) continue;
    const bool is_unknown = summer.state == State::kSlow && summer.step_seconds_without == 0;
    if (is_unknown) summer.step_seconds_without = window.step_seconds;
    if (summer.state != State::kTrial) continue;
    summer.step_seconds_without = window.step_seconds;
    if (window.step_seconds <= summer.step_seconds_with - summer.late_seconds / 2) {
      condemn(member, summer, now, actions);
    } else if (++summer.trial_windows >= kTrialWindows || window.step_seconds >= summer.step_seconds_with) {
      acquit(member, summer, now, actions);
    }
  }
}

void SlowSummers::condemn(uint32_t member, Summer& summer, absl::Duration now, Actions& actions) {
  GLN_RARE("coordinator: a slow summer gets no partitions");
  const bool again = summer.state == State::kTriedAgain;
  summer.backoff = next_pause(summer.backoff, kFirstBackoff, kLongestBackoff);
  summer.until = now + summer.backoff;
  summer.state = State::kSlow;
  set_standby(member, summer, true);
  actions.warnings.push_back(absl::StrCat(
      name(member),
      again ? " is still slow: " : " is slow: ", figures(summer.step_seconds_with, summer.step_seconds_without),
      "; it gets no partitions, and is tried again in ", absl::FormatDuration(summer.backoff)));
}

void SlowSummers::acquit(uint32_t member, Summer& summer, absl::Duration now, Actions& actions) {
  GLN_RARE("coordinator: a summer gets its partitions back after a trial");
  summer.backoff = next_pause(summer.backoff, kFirstBackoff, kLongestBackoff);
  summer.until = now + summer.backoff;
  summer.state = State::kWatched;
  set_standby(member, summer, false);
  actions.notes.push_back(absl::StrCat(name(member),
                                       " is not slow: ", figures(summer.step_seconds_with, summer.step_seconds_without),
                                       "; it gets its partitions back"));
}

void SlowSummers::on_tick(absl::Duration now, Actions& actions) {
  for (auto summer = summers_.begin(); summer != summers_.end();) {
    auto& [member, what] = *summer;
    const bool is_due = now >= what.until && is_here(member, what);
    if (what.state == State::kSlow && is_due) {
      what.state = State::kTriedAgain;
      what.until = absl::InfiniteDuration();  // until the plan with its share is in force
      set_standby(member, what, false);
      actions.notes.push_back(absl::StrCat(name(member), " was slow, and is tried again: it gets partitions"));
    } else if (what.state == State::kTriedAgain && is_due) {
      actions.notes.push_back(absl::StrCat(name(member), " is no longer slow"));
      summer = summers_.erase(summer);
      continue;
    } else if (what.state == State::kWatched && what.late_windows == 0 && now >= what.until + kGoodPeriod) {
      summer = summers_.erase(summer);
      continue;
    }
    ++summer;
  }
}

std::string SlowSummers::describe(uint32_t seat) const {
  if (!roster_.is_summer(seat)) return "";
  const auto found = summers_.find(roster_.member_of(seat));
  if (found == summers_.end()) return "";
  const Summer& summer = found->second;
  if (summer.state != State::kSlow && summer.state != State::kTriedAgain) return "";
  const std::string why = summer.step_seconds_with > 0 ? figures(summer.step_seconds_with, summer.step_seconds_without)
                                                       : "an earlier coordinator measured longer steps with it";
  return absl::StrCat(why, summer.state == State::kSlow ? "; it has no partitions, and is tried again later"
                                                        : "; it is being tried again");
}

// Returns whether the summer's seat still has the same summer. After a loss the next plan leaves the summer out.
bool SlowSummers::is_here(uint32_t member, const Summer& summer) const {
  const uint32_t seat = roster_.seat_of_member(member);
  return seat < roster_.size() && summer.since > 0 && roster_[seat].since == summer.since;
}

void SlowSummers::set_standby(uint32_t member, const Summer& summer, bool on_standby) {
  if (is_here(member, summer)) roster_[roster_.seat_of_member(member)].on_standby = on_standby;
}

uint32_t SlowSummers::count() const {
  return static_cast<uint32_t>(std::count_if(summers_.begin(), summers_.end(), [](const auto& entry) {
    return entry.second.state == State::kSlow || entry.second.state == State::kTriedAgain;
  }));
}

bool SlowSummers::is_any_on_trial() const {
  return std::any_of(summers_.begin(), summers_.end(),
                     [](const auto& entry) { return entry.second.state == State::kTrial; });
}

}  // namespace gleaner::coordinator
