// Counts what a rank has reduced and how long it waited for it. Belongs to the I/O thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/member/client.h"

namespace gleaner::runtime {

class Meter {
 public:
  void begin(absl::Duration now) {
    if (in_flight_++ == 0) busy_since_ = now;
  }
  // `tensor`: a dense id; the most push_pulls of one tensor count as steps where nobody calls step().
  void end(uint32_t tensor, uint64_t bytes, bool ok, absl::Duration now) {
    if (--in_flight_ == 0) busy_ += now - busy_since_;
    if (!ok) return;
    bytes_ += bytes;
    if (times_.size() <= tensor) times_.resize(tensor + 1, 0);
    most_ = std::max(most_, ++times_[tensor]);
  }
  void step() { ++steps_; }

  bool busy() const { return in_flight_ > 0; }
  member::Report report(absl::Duration now) const {
    const absl::Duration open = in_flight_ > 0 ? now - busy_since_ : absl::ZeroDuration();
    return {steps_ > 0 ? steps_ : most_, bytes_, absl::ToDoubleSeconds(busy_ + open)};
  }

 private:
  uint32_t in_flight_ = 0;
  absl::Duration busy_since_;
  absl::Duration busy_;
  uint64_t bytes_ = 0;
  uint64_t steps_ = 0;
  uint64_t most_ = 0;
  std::vector<uint64_t> times_;  // per tensor
};

}  // namespace gleaner::runtime
