// JumpingClock: a real clock that a test can put forward. Tests give the code under test timeouts so long that no slow
// machine reaches them, and jump over them.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/base/env.h"

namespace gleaner {

class JumpingClock final : public Clock {
 public:
  explicit JumpingClock(const Clock* real) : real_(*real) {}
  absl::Duration since_start() const override { return real_.since_start() - held() + ahead(); }
  absl::Time now() const override { return real_.now() - held() + ahead(); }
  void jump(absl::Duration duration) { ahead_ += absl::ToInt64Nanoseconds(duration); }
  // Holds the clock at the present time until go_on(), for work that takes long on a slow machine.
  void stop() { stopped_at_ = absl::ToInt64Nanoseconds(real_.since_start()); }
  void go_on() {
    ahead_ -= absl::ToInt64Nanoseconds(held());
    stopped_at_ = 0;
  }

 private:
  // Returns the time since stop().
  absl::Duration held() const {
    const int64_t stopped_at = stopped_at_.load();
    return stopped_at == 0 ? absl::ZeroDuration() : real_.since_start() - absl::Nanoseconds(stopped_at);
  }
  absl::Duration ahead() const { return absl::Nanoseconds(ahead_.load()); }

  const Clock& real_;
  std::atomic<int64_t> ahead_{0};       // nanoseconds
  std::atomic<int64_t> stopped_at_{0};  // nanoseconds of real_.since_start(); 0: the clock runs
};

}  // namespace gleaner
