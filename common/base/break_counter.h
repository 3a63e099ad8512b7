// BreakCounter counts how often the connection to one peer breaks, and decides when a warning is due. Pure.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace gleaner {

class BreakCounter {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(10);
  static constexpr uint32_t kMany = 4;  // breaks within the window; healthy connections have fewer

  // Counts a break. Returns the number of breaks in this window if a warning is due, else 0. Warnings are due at the
  // 4th (kMany), 16th, 64th ... break, so that a window logs only a few lines.
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
