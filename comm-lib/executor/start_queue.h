// StartQueue holds the partitions of started pieces, and decides when their programs begin. The most urgent begins
// first: that of the tensor with the lowest priority value, then the first in the plan.
//
// Limit. Partitions in flight, whose programs have begun and not ended, stay within a *limit* of bytes; one may always
// be in flight. So a worker holds few work buffers and sends its first slice at once, and no worker gets far ahead of
// the others: slices that it would send early would take the links from slices that others wait for.
//
// Admission. Workers may start tensors in different orders. A limit alone would then let each worker fill it with
// partitions that its peers have not begun, for ever. So a worker *admits* a partition that a peer has begun, whatever
// the limit says, as soon as its own piece has been started. The worker knows of it by a slice of the partition, or by
// a kAwait: on a tick, a worker asks each peer for whose slice a run has waited since the last tick, and from which no
// slice of the run has come.
//
// No deadlock. Suppose that every worker has started a partition P, and one of them has begun it. P's program ends,
// since its schedule has no deadlock, unless a worker waits for a slice of a peer that has not begun P. That peer gets
// a kAwait, and admits P. So P ends; and with it, by the same argument, everything in flight. Then there is room.
//
// Memory. A worker begins a partition that no peer has begun only within its limit, so all workers together have at
// most n limits in flight, and that bounds each worker's work buffers and early slices.
//
// Pure. Once warm it allocates no memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace gleaner::executor {

class StartQueue {
 public:
  // The partitions of a piece that have not had their turn: `next` to `end` - 1, as indexes in the plan.
  struct Waiting {
    int32_t priority = 0;   // of the tensor
    uint32_t schedule = 0;  // index in the plan
    uint32_t next = 0;
    uint32_t end = 0;
  };

  void set_limit(uint64_t bytes) { limit_bytes_ = bytes; }
  void push(const Waiting& waiting) {
    heap_.push_back(waiting);
    std::push_heap(heap_.begin(), heap_.end(), Later());
  }
  bool empty() const { return heap_.empty(); }
  // The most urgent partition is front().next. Needs !empty().
  const Waiting& front() const { return heap_.front(); }
  // Takes the most urgent partition out.
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later());
    if (++heap_.back().next == heap_.back().end) return heap_.pop_back();
    std::push_heap(heap_.begin(), heap_.end(), Later());
  }

  // Returns whether a partition of `bytes` bytes may begin that no peer has begun.
  bool has_room(uint64_t bytes) const { return in_flight_ == 0 || in_flight_bytes_ + bytes <= limit_bytes_; }
  // Records that a partition of `bytes` bytes begins, or that it has ended.
  void begin(uint64_t bytes) {
    ++in_flight_;
    in_flight_bytes_ += bytes;
  }
  void end(uint64_t bytes) {
    --in_flight_;
    in_flight_bytes_ -= bytes;
  }

  void clear() {
    heap_.clear();
    in_flight_ = 0;
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
};

}  // namespace gleaner::executor
