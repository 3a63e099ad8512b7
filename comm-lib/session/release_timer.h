// ReleaseTimer decides when a worker asks owners which results every worker has. The worker asks while no piece is in
// flight, since then no RESULT arrives, which would contain that information. The pause between two questions doubles
// each time. Pure.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "common/base/backoff.h"

namespace gleaner::session {

class ReleaseTimer {
 public:
  // To be called with each tick; returns whether the worker asks now. `in_flight`: the number of pieces in flight.
  // `started`: the number of pieces started so far. `has_questions`: the worker retains results that others may need.
  bool tick(uint32_t in_flight, uint64_t started, bool has_questions, absl::Duration now) {
    const bool is_quiet = std::exchange(last_started_, started) == started && in_flight == 0;
    if (!is_quiet || !has_questions) {
      pause_ = absl::ZeroDuration();
      return false;
    }
    if (now < ask_at_) return false;
    pause_ = next_pause(pause_, kFirstPause, kLongestPause);
    ask_at_ = now + pause_;
    return true;
  }

 private:
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(10);
  static constexpr absl::Duration kLongestPause = absl::Milliseconds(500);
  uint64_t last_started_ = 0;  // the value of `started` at the last tick
  absl::Duration pause_;
  absl::Duration ask_at_;
};

}  // namespace gleaner::session
