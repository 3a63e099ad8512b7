// Run is one partition in one push_pull. It exists from the first slice of another worker or from this worker's own
// start(), whichever comes first, until its program has ended.
#pragma once

#include <cstdint>

#include "comm-lib/executor/cursor.h"
#include "common/base/bytes.h"

namespace gleaner::executor {

struct Run {
  static constexpr uint32_t kNone = UINT32_MAX;
  Cursor cursor;
  uint32_t partition = 0;  // index in the plan
  uint32_t schedule = 0;   // index in the plan
  uint64_t step = 0;       // of the partition, by this schedule
  ReduceOp op = ReduceOp::kSum;
  uint32_t named_by = 0;       // the worker that named the op first
  uint32_t piece = kNone;      // index in OpenPieces, once this worker has started it
  uint32_t waits_for = kNone;  // the peer at whose receive the cursor is blocked
  uint32_t ticks_blocked = 0;  // number of ticks since waits_for last changed
  bool is_wanted = false;      // a peer has begun it
};

}  // namespace gleaner::executor
