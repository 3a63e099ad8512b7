// Subject says what a run is about, in the words of the frames about it (wire/frame.h): it is the key by which workers
// find the same run. Order says which run goes first.
#pragma once

#include <compare>
#include <cstdint>

#include "common/base/bytes.h"
#include "common/wire/frame.h"

namespace gleaner::executor {

struct Subject {
  uint32_t tensor = 0;
  uint32_t partition = 0;  // index within the tensor
  uint32_t schedule = 0;   // index in Plan::schedules
  uint64_t step = 0;       // of the partition, by this schedule
  ReduceOp op = ReduceOp::kSum;

  bool is_call() const { return (tensor & wire::kCallBit) != 0; }

  // Writes the subject into a frame's header.
  void write_to(wire::Header& header) const {
    header.tensor = tensor;
    header.partition = partition;
    header.schedule = schedule;
    header.step = step;
    header.op = op;
  }
};

// The most urgent has the lowest priority value, and then the lowest position.
struct Order {
  int32_t priority = 0;   // of the tensor
  uint32_t position = 0;  // of the partition in the plan
  friend auto operator<=>(const Order&, const Order&) = default;
};

}  // namespace gleaner::executor
