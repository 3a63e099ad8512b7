// Runs is a pool of Run. Once warm it allocates no memory. Belongs to one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "comm-lib/collective/cursor.h"
#include "common/base/bytes.h"

namespace gleaner::collective {

// One partition in one push_pull. It exists from the first slice of another worker or from this worker's own start(),
// whichever comes first, until its program has ended.
struct Run {
  static constexpr uint32_t kNone = UINT32_MAX;
  Cursor cursor;
  uint32_t partition = 0;  // index in the plan
  uint32_t schedule = 0;   // index in the plan
  uint64_t step = 0;       // of the partition, by this schedule
  ReduceOp op = ReduceOp::kSum;
  uint32_t named_by = 0;       // the worker that named the op first
  uint32_t piece = kNone;      // index in Pieces, once this worker has started it
  uint32_t waits_for = kNone;  // the peer at whose receive the cursor is blocked
  uint32_t ticks_blocked = 0;  // number of ticks since waits_for last changed
  bool is_wanted = false;      // a peer has begun it
};

class Runs {
 public:
  // Returns the index of an unused run. References to runs stay valid.
  uint32_t take() {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(runs_.size()));
      runs_.emplace_back();
      free_.reserve(runs_.size());
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void give_back(uint32_t index) {
    runs_[index].cursor.close();
    runs_[index].waits_for = Run::kNone;
    free_.push_back(index);
  }
  // Returns the number of indexes, used and unused.
  uint32_t size() const { return static_cast<uint32_t>(runs_.size()); }
  Run& operator[](uint32_t index) { return runs_[index]; }
  const Run& operator[](uint32_t index) const { return runs_[index]; }

 private:
  std::deque<Run> runs_;
  std::vector<uint32_t> free_;
};

}  // namespace gleaner::collective
