// AnswerTimes matches the PONGs of a connection to its measured PINGs, and says how long recent ones usually took. A
// PONG that waited behind other frames came late, so the lower quartile counts: fewer than three quarters of the PINGs
// may meet other traffic. The least time would be too short, since it is that of threads that happened not to sleep.
// Pure; the caller passes the time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/base/median.h"

namespace gleaner::transport::stream {

class AnswerTimes {
 public:
  // The latest answers, of which usual() is the quartile; so it follows a path that has changed.
  static constexpr size_t kRemembered = 32;

  // Begins a measurement by `times` PINGs, and ends an earlier one: a PONG of an earlier PING no longer counts.
  void begin(uint32_t times) {
    left_ = times;
    under_way_ = 0;
  }
  bool is_under_way() const { return left_ > 0; }

  // Returns the number by which the next PING asks for its PONG; never 0, which is that of a PING for keep-alive.
  uint32_t on_ping(absl::Duration now) {
    if (++last_ == 0) ++last_;
    under_way_ = last_;
    sent_at_ = now;
    return under_way_;
  }
  // Takes the PONG with this number. Returns whether the next PING of the measurement is due.
  bool on_pong(uint32_t number, absl::Duration now) {
    if (under_way_ == 0 || number != under_way_) return false;
    under_way_ = 0;
    --left_;
    answers_[count_++ % kRemembered] = now - sent_at_;
    return left_ > 0;
  }

  // Returns the lower quartile of the latest answers; zero without one.
  absl::Duration usual() const {
    return lower_quartile(std::vector(answers_.begin(), answers_.begin() + static_cast<std::ptrdiff_t>(known())));
  }

 private:
  size_t known() const { return count_ < kRemembered ? count_ : kRemembered; }

  uint32_t left_ = 0;       // answers that the measurement still lacks
  uint32_t last_ = 0;       // number of the last PING
  uint32_t under_way_ = 0;  // number of the PING whose PONG counts; 0: none
  absl::Duration sent_at_;
  std::array<absl::Duration, kRemembered> answers_;  // the oldest one is overwritten
  uint64_t count_ = 0;                               // of all answers
};

}  // namespace gleaner::transport::stream
