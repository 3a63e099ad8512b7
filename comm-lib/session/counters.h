// Counters are the figures of a Session since it began.
#pragma once

#include <cstdint>

namespace gleaner::session {

struct Counters {
  uint64_t pushed_bytes = 0;     // payload bytes of contributions, repeats included
  uint64_t repeated_pushes = 0;  // repeated after a reconnect, a kDefer or a move
  uint64_t results = 0;          // partitions whose result has arrived
  uint64_t duplicate_results = 0;
  uint64_t deferred = 0;
  uint64_t stalls = 0;             // calls of on_tick() that made the window or a credit grow
  uint64_t moved = 0;              // partitions in flight that a plan gave to another owner
  uint64_t handed = 0;             // results and running sums sent to a new owner that asked for them
  uint64_t retained_bytes = 0;     // results and running sums kept for other workers and later owners
  uint64_t outstanding_bytes = 0;  // pushed and still without a result
  uint64_t window_used_bytes = 0;  // on the way, without those to this worker's own summer
  uint64_t window_bytes = 0;       // the window in force, growth included
};

}  // namespace gleaner::session
