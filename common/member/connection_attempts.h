// ConnectionAttempts decides when a member tries to connect to its coordinator, and when an attempt has taken too long.
// Pure; belongs to one thread.
//
// The pause between attempts doubles from the first to the longest. A random part of at most half is taken off each
// pause, so that members that lost the coordinator together do not return together.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "common/base/backoff.h"

namespace gleaner::member {

// Intervals and time limits of a member.
struct Pace {
  absl::Duration first_pause = absl::Milliseconds(100);  // before the first commit
  absl::Duration longest_pause = absl::Seconds(1);
  absl::Duration first_pause_away = absl::Milliseconds(200);  // after the first commit
  absl::Duration longest_pause_away = absl::Seconds(5);
  // An attempt fails after this time without a message from the coordinator.
  absl::Duration attempt = absl::Seconds(20);
  absl::Duration heartbeat = absl::Seconds(1);
  // The longest time between two calls of on_tick() without a connection.
  absl::Duration tick_away = absl::Milliseconds(100);
};

class ConnectionAttempts {
 public:
  // `random` returns random numbers from 0 to 1.
  ConnectionAttempts(const Pace& pace, std::function<double()> random) : pace_(pace), random_(std::move(random)) {}

  // Records that an attempt begins.
  void begin(absl::Duration now) {
    began_ = now;
    is_connected_ = true;
  }
  // Records that the connection has ended, or is to be dropped. Returns whether there was one.
  bool end() { return std::exchange(is_connected_, false); }

  // Schedules the next attempt. `has_begun`: a plan was committed. `leaves`: the member only wants to leave, and tries
  // at the shortest interval.
  void retry_later(bool has_begun, bool leaves, absl::Duration now) {
    const absl::Duration first = has_begun ? pace_.first_pause_away : pace_.first_pause;
    const absl::Duration longest = leaves ? first : has_begun ? pace_.longest_pause_away : pace_.longest_pause;
    pause_ = next_pause(pause_, first, longest);
    retry_at_ = now + pause_ * (0.5 + random_() / 2);
  }
  void retry_now(absl::Duration now) {
    reset_pause();
    retry_at_ = now;
  }
  void reset_pause() { pause_ = absl::ZeroDuration(); }

  bool is_due(absl::Duration now) const { return !is_connected_ && now >= retry_at_; }
  // Returns whether the attempt, or the silence on the connection, has lasted too long. `last_heard`: when the last
  // message from the coordinator came, on any connection.
  bool has_timed_out(absl::Duration last_heard, absl::Duration now) const {
    return is_connected_ && now - std::max(began_, last_heard) > pace_.attempt;
  }

 private:
  const Pace pace_;
  const std::function<double()> random_;
  bool is_connected_ = false;  // a connection is open or being opened
  absl::Duration began_;       // when the last attempt began
  absl::Duration pause_;
  absl::Duration retry_at_;
};

}  // namespace gleaner::member
