// Says why a plan's step takes as long as it does: what each machine moves, which one binds, and what one more summer
// would buy. Pure; the numbers are those of model.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/partitioner.h"
#include "common/plan/plan.h"

namespace gleaner::plan {

struct MachineLoad {
  std::string name;  // "worker/0"
  double bits_per_second = 0;
  uint64_t owned_bytes = 0;
  double share = 0;          // owned, of the stream
  double traffic_bytes = 0;  // each way and step
  double seconds = 0;        // traffic over bandwidth
};

// What the bound comes from.
enum class Limit {
  kNothingMoves,   // one worker, or nothing to reduce
  kSlowestWorker,  // its own gradient fills its link; more summers can't help
  kAllLinks,       // every link is busy from the first byte to the last; every bit/s more helps
};

struct Explanation {
  uint32_t workers = 0;
  std::vector<MachineLoad> machines;  // by member
  uint32_t binding = 0;               // the member that takes longest
  uint32_t slowest_worker = 0;        // the one with the least bandwidth
  Limit limit = Limit::kNothingMoves;

  uint64_t stream_bytes = 0;
  double seconds = 0;             // of these partitions
  double bound_seconds = 0;       // of the best split there can be
  double all_reduce_seconds = 0;  // the bound without CPU summers

  // One more summer, as fast as the median summer, or worker where there is no summer.
  double one_more_bits_per_second = 0;
  double one_more_bound_seconds = 0;

  size_t tensors = 0;
  size_t partitions = 0;
  uint32_t smallest_partition = 0;
  uint32_t largest_partition = 0;
  uint64_t default_partition_bytes = 0;  // for a stream of this size
  PartitionLimits partition_limits;
  uint64_t window_bytes = 0;  // of the slowest worker
};

// `plan` must be valid.
Explanation explain(const Plan& plan);

// For people: a line per machine, then the sentences.
std::string to_text(const Explanation& explanation);

// For people in a hurry: a line per kind of machine.
std::string to_table(const Explanation& explanation);

}  // namespace gleaner::plan
