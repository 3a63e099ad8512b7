// ReadyQueue holds the slices that wait to be sent to one peer. The most urgent leaves first: that of the tensor with
// the lowest priority value, then of the partition that comes first in the plan, then the oldest. So the slices of one
// partition keep their order. Once warm it allocates no memory. Belongs to one thread.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/bytes.h"
#include "common/base/slots.h"

namespace gleaner::executor {

struct OutgoingSlice {
  uint32_t tensor = 0;
  uint32_t partition = 0;  // index within the tensor
  uint32_t schedule = 0;   // index in Plan::schedules
  uint64_t step = 0;       // of the partition, by this schedule
  // For traces: the step of the schedule in which the slice is sent, and its first chunk.
  uint32_t schedule_step = 0;
  uint32_t chunk = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int32_t priority = 0;   // of the tensor
  uint32_t position = 0;  // of the partition in the plan
  Buffer payload;
};

class ReadyQueue {
 public:
  bool empty() const { return heap_.empty(); }
  size_t front_bytes() const { return slices_[heap_.front().slot].payload.size(); }

  void push(OutgoingSlice slice) {
    const uint32_t slot = slices_.take();
    heap_.push_back({slice.priority, slice.position, pushed_++, slot});
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
    int32_t priority = 0;
    uint32_t position = 0;
    uint64_t number = 0;  // of the push()
    uint32_t slot = 0;    // in slices_
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> heap_;  // with the most urgent slice first
  Slots<OutgoingSlice> slices_;
  uint64_t pushed_ = 0;
};

}  // namespace gleaner::executor
