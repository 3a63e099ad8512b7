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
  absl::Duration since_start() const override { return real_.since_start() + ahead(); }
  absl::Time now() const override { return real_.now() + ahead(); }
  void jump(absl::Duration duration) { ahead_ += absl::ToInt64Nanoseconds(duration); }

 private:
  absl::Duration ahead() const { return absl::Nanoseconds(ahead_.load()); }

  const Clock& real_;
  std::atomic<int64_t> ahead_{0};  // nanoseconds
};

}  // namespace gleaner
