// Counters are the figures of an Executor since it began.
#pragma once

#include <cstdint>

namespace gleaner::executor {

struct Counters {
  uint64_t slices = 0;             // sent, repeats included
  uint64_t slice_bytes = 0;        // their payload bytes
  uint64_t repeated_slices = 0;    // sent again over a new connection
  uint64_t duplicate_slices = 0;   // received again
  uint64_t results = 0;            // partitions whose program has ended
  uint64_t unconfirmed_bytes = 0;  // sent and not confirmed by the peers, headers included
  uint64_t window_bytes = 0;       // the window of each peer
};

}  // namespace gleaner::executor
