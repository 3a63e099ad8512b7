// ReadyQueue holds the slices that wait to be sent to one peer. The most urgent run's leave first (subject.h), the
// oldest of them before the others. So the slices of one run keep their order. Once warm it allocates no memory.
// Belongs to one thread.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "comm-lib/executor/subject.h"
#include "common/base/buffer.h"
#include "common/base/bytes.h"
#include "common/base/slots.h"

namespace gleaner::executor {

struct OutgoingSlice {
  Subject subject;
  Order order;
  // For traces: the step of the schedule in which the slice is sent, and its first chunk.
  uint32_t schedule_step = 0;
  uint32_t chunk = 0;
  DataType type = DataType::kFloat32;
  Buffer payload;
};

class ReadyQueue {
 public:
  bool empty() const { return heap_.empty(); }
  // Returns the most urgent slice. Needs !empty().
  const OutgoingSlice& front() const { return slices_[heap_.front().slot]; }

  void push(OutgoingSlice slice) {
    const uint32_t slot = slices_.take();
    heap_.push_back({slice.order, pushed_++, slot});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    slices_[slot] = std::move(slice);
  }
  // Takes the most urgent slice out. Needs !empty().
  OutgoingSlice pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const uint32_t slot = heap_.back().slot;
    heap_.pop_back();
    slices_.give_back(slot);
    return std::move(slices_[slot]);
  }
  void clear() {
    while (!empty()) pop();
  }

 private:
  struct Entry {
    Order order;
    uint64_t number = 0;  // of the push()
    uint32_t slot = 0;    // in slices_
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> heap_;  // with the most urgent slice first
  Slots<OutgoingSlice> slices_;
  uint64_t pushed_ = 0;
};

}  // namespace gleaner::executor
