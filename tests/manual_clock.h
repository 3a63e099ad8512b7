// ManualClock: a clock that only advance() moves.
#pragma once

#include <atomic>

#include "common/base/env.h"

namespace gleaner {

class ManualClock : public Clock {
 public:
  absl::Duration since_start() const override { return absl::Nanoseconds(now_.load()); }
  absl::Time now() const override { return absl::UnixEpoch() + since_start(); }
  void advance(absl::Duration duration) { now_ += absl::ToInt64Nanoseconds(duration); }

 private:
  std::atomic<int64_t> now_{0};
};

}  // namespace gleaner
