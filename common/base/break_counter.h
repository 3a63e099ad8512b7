// Counts how often the connection to one peer breaks, and says when that is worth a warning. Pure.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace gleaner {

class BreakCounter {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(10);
  static constexpr uint32_t kMany = 4;  // within the window; fewer happen to connections that work

  // The connection broke. Returns the breaks in this window when it is time to warn of them: with the kMany-th, and
  // four times as many each time after that, so that a window costs a handful of lines in the log; 0 otherwise.
  uint32_t on_break(absl::Duration now) {
    if (breaks_ == 0 || now - since_ > kWindow) {
      since_ = now;
      breaks_ = 0;
      warn_at_ = kMany;
    }
    if (++breaks_ < warn_at_) return 0;
    warn_at_ *= 4;
    return breaks_;
  }

 private:
  absl::Duration since_;
  uint32_t breaks_ = 0;
  uint32_t warn_at_ = kMany;
};

}  // namespace gleaner
