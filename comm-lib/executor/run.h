// Run is one execution of a program, on one partition or one call of a collective. It exists from the first slice of
// another worker or from this worker's own start, whichever comes first, until its program has ended. The Machine
// (machine.h) executes runs, and a RunOwner gives them their contributions and takes their results.
#pragma once

#include <cstdint>

#include "comm-lib/executor/cursor.h"
#include "comm-lib/executor/subject.h"
#include "common/base/bytes.h"

namespace gleaner::executor {

class RunOwner;
class StartQueue;

struct Run {
  static constexpr uint32_t kNone = UINT32_MAX;
  Cursor cursor;
  RunOwner* owner = nullptr;
  StartQueue* queue = nullptr;  // which decides when the run begins
  Subject subject;
  Order order;
  uint64_t bytes = 0;   // of partial sums, which count in the StartQueue's limit
  uint64_t number = 0;  // no other run of the machine has it
  // The owner's: the worker that named the op first, and the index of the piece once this worker has started the run.
  uint32_t named_by = 0;
  uint32_t piece = kNone;
  uint32_t waits_for = kNone;  // the peer at whose receive the cursor is blocked
  uint32_t ticks_blocked = 0;  // number of ticks since waits_for last changed
  bool is_started = false;     // by this worker
  bool is_wanted = false;      // a peer has begun it
};

}  // namespace gleaner::executor
