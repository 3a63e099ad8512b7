// StartQueue holds the runs that this worker has started, and decides when their programs begin. The most urgent begins
// first (subject.h). This text says partition for what a run is about.
//
// Limit. Partitions in flight, whose programs have begun and not ended, stay within a *limit* of bytes; one may always
// be in flight, or two parts of calls (calls.h), of which one ends while the other is on its way. So a worker holds few
// work buffers and sends its first slice at once, and no worker gets far ahead of the others: slices that it would send
// early would take the links from slices that others wait for.
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

#include "comm-lib/executor/subject.h"

namespace gleaner::executor {

class StartQueue {
 public:
  // `least`: the number of partitions that may be in flight whatever the limit says, at least 1.
  explicit StartQueue(uint32_t least = 1) : least_(least) {}
  // A run that has not had its turn. It may have begun, or ended, since push(): Run::number then tells.
  struct Waiting {
    Order order;
    uint32_t run = 0;
    uint64_t number = 0;  // Run::number
  };

  void set_limit(uint64_t bytes) { limit_bytes_ = bytes; }
  void push(const Waiting& waiting) {
    heap_.push_back(waiting);
    std::push_heap(heap_.begin(), heap_.end(), Later());
  }
  bool empty() const { return heap_.empty(); }
  // Returns the most urgent run. Needs !empty().
  const Waiting& front() const { return heap_.front(); }
  // Takes the most urgent run out.
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later());
    heap_.pop_back();
  }

  // Returns whether a partition of `bytes` bytes may begin that no peer has begun.
  bool has_room(uint64_t bytes) const { return in_flight_ < least_ || in_flight_bytes_ + bytes <= limit_bytes_; }
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
      return std::pair(a.order, a.number) > std::pair(b.order, b.number);
    }
  };

  uint32_t least_;
  std::vector<Waiting> heap_;  // with the most urgent run first
  uint64_t limit_bytes_ = 0;
  uint64_t in_flight_bytes_ = 0;
  uint32_t in_flight_ = 0;
};

}  // namespace gleaner::executor
