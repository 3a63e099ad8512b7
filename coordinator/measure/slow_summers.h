// SlowSummers finds CPU summers with which steps take longer than without them, and keeps them on standby: such a
// summer takes part in the job, and owns no partition.
//
// The plan gives each summer the share that fits its network. A summer may still be slow, for example because its
// container's CPU limit is low. Then it is late for every worker (lateness_windows.h), and steps wait for it. What
// happens to a summer:
// 1. It is *watched*. If it is late in kLateWindows windows in succession, its trial begins.
// 2. In the *trial* it is on standby, and the steps' time is compared with that before. If steps become shorter by at
//    least half of the time that the summer was late, the summer is *slow*. If they become longer, or do not become
//    shorter within kTrialWindows windows, the suspicion was wrong: the summer gets its share back, and the next trial
//    waits (backoff).
// 3. A slow summer stays on standby for the backoff: kFirstBackoff, twice as long each further time, kLongestBackoff at
//    most. Then it is *tried again* with its full share. If it is late in one window, and steps are longer than without
//    it by at least half of that, it is slow again. After kGoodPeriod without that it is watched as before, and the
//    backoff begins anew.
// A summer that another coordinator had put on standby counts as slow.
//
// SlowSummers sets Seat::on_standby, and the planner makes the plan that follows from it. Pure; belongs to a
// StepMonitor.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/measure/efficiency_meter.h"
#include "coordinator/measure/lateness_windows.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class SlowSummers {
 public:
  static constexpr uint32_t kLateWindows = 2;
  static constexpr uint32_t kTrialWindows = 3;
  static constexpr absl::Duration kFirstBackoff = absl::Seconds(30);
  static constexpr absl::Duration kLongestBackoff = absl::Minutes(10);
  static constexpr absl::Duration kGoodPeriod = absl::Minutes(1);

  // `roster` must outlive this object.
  explicit SlowSummers(Roster* roster) : roster_(*roster) {}

  // Records that `plan` comes into force, or is taken up from another coordinator.
  void on_plan(const plan::Plan& plan, absl::Duration now);
  // Takes a report of a worker's local rank 0. Adds lines for the log.
  void on_report(uint32_t worker, const Report& report, absl::Duration now, Actions& actions);
  // Tries slow summers again whose backoff is over.
  void on_tick(absl::Duration now, Actions& actions);

  // Says that the summer in this seat is slow, with the figures. Empty: it is not slow. The text does not change while
  // the summer waits for its next try.
  std::string describe(uint32_t seat) const;
  // Returns the number of slow summers. Those that are being tried again count.
  uint32_t count() const;

 private:
  enum class State { kWatched, kTrial, kSlow, kTriedAgain };
  struct Summer {
    uint32_t since = 0;  // as in plan::Member
    State state = State::kWatched;
    bool has_share = true;      // under the plan in force
    uint32_t late_windows = 0;  // in succession
    uint32_t trial_windows = 0;
    double late_seconds = 0;          // late per step, in the last window in which it was late
    double step_seconds_with = 0;     // time of a step with the summer, in that window
    double step_seconds_without = 0;  // on standby
    absl::Duration backoff;           // the last one; 0: none yet
    // Watched: the earliest time of a trial. Slow: when it is tried again. Tried again: the end of the good period.
    absl::Duration until;
  };

  void watch(const LatenessWindows::Window& window, absl::Duration now, Actions& actions);
  void judge_trials(const LatenessWindows::Window& window, absl::Duration now, Actions& actions);
  void condemn(uint32_t member, Summer& summer, absl::Duration now, Actions& actions);
  void acquit(uint32_t member, Summer& summer, absl::Duration now, Actions& actions);
  bool is_any_on_trial() const;
  bool is_here(uint32_t member, const Summer& summer) const;
  void set_standby(uint32_t member, const Summer& summer, bool on_standby);
  std::string name(uint32_t member) const { return roster_.located(roster_.seat_of_member(member)); }

  Roster& roster_;
  LatenessWindows windows_;
  std::map<uint32_t, Summer> summers_;  // by member: those on standby, and those that are or were late
};

}  // namespace gleaner::coordinator
