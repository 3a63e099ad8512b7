// StartQueue holds the partitions of started pieces whose programs have not begun, and decides when they begin. The
// most urgent begins first: that of the tensor with the lowest priority value, then the first in the plan.
//
// Partitions in flight, whose programs have begun and not ended, stay within a *limit* of bytes; one may always be in
// flight. So a worker holds few work buffers and sends its first slice at once, and no worker gets far ahead of the
// others: slices that it would send early would take the links from slices that others wait for.
//
// Workers that start large tensors in different orders may each fill their limits with partitions that the others have
// not begun. Then no frame arrives at any worker. on_tick() lets more partitions begin after kSilence without a frame.
//
// Pure. Once warm it allocates no memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/buffer.h"

namespace gleaner::collective {

class StartQueue {
 public:
  static constexpr absl::Duration kSilence = absl::Milliseconds(100);

  // The partitions of a piece that have not begun: `next` to `end` - 1, as indexes in the plan.
  struct Waiting {
    int32_t priority = 0;   // of the tensor
    uint32_t schedule = 0;  // index in the plan
    uint32_t next = 0;
    uint32_t end = 0;
    uint64_t offset = 0;  // position of `input` in the tensor, in bytes of results
    Buffer input;         // contributions of the whole piece
  };

  void set_limit(uint64_t bytes) { limit_bytes_ = bytes; }
  void push(Waiting waiting) {
    heap_.push_back(std::move(waiting));
    std::push_heap(heap_.begin(), heap_.end(), Later());
  }
  bool empty() const { return heap_.empty(); }
  // The most urgent partition is front().next. Needs !empty().
  const Waiting& front() const { return heap_.front(); }
  // Returns whether a partition of `bytes` bytes may begin.
  bool has_room(uint64_t bytes) const {
    return in_flight_ == 0 || allowed_ > 0 || in_flight_bytes_ + bytes <= limit_bytes_;
  }
  // Records that the partition front().next, of `bytes` bytes, begins.
  void begin(uint64_t bytes, absl::Duration now) {
    if (in_flight_++ == 0) heard_ = now;
    in_flight_bytes_ += bytes;
    if (allowed_ > 0) --allowed_;
    if (++heap_.front().next < heap_.front().end) return;
    std::pop_heap(heap_.begin(), heap_.end(), Later());
    heap_.pop_back();
  }
  // Records that a partition in flight has ended.
  void end(uint64_t bytes) {
    --in_flight_;
    in_flight_bytes_ -= bytes;
  }

  void on_frame(absl::Duration now) { heard_ = now; }
  // After a silence, lets half as many partitions begin as are in flight, beyond the limit.
  void on_tick(absl::Duration now) {
    if (empty() || now - heard_ < kSilence) return;
    heard_ = now;
    allowed_ = in_flight_ / 2 + 1;
  }

  void clear() {
    heap_.clear();
    in_flight_ = allowed_ = 0;
    in_flight_bytes_ = 0;
  }

 private:
  struct Later {
    bool operator()(const Waiting& a, const Waiting& b) const {
      return std::pair(a.priority, a.next) > std::pair(b.priority, b.next);
    }
  };

  std::vector<Waiting> heap_;  // with the most urgent partition first
  uint64_t limit_bytes_ = 0;
  uint64_t in_flight_bytes_ = 0;
  uint32_t in_flight_ = 0;
  uint32_t allowed_ = 0;  // number of partitions that may begin whatever the limit says
  absl::Duration heard_;  // the time of the last frame, silence, or start after no partition was in flight
};

}  // namespace gleaner::collective
