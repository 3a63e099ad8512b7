// The bytes that a schedule costs each rank, independent of a network. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/cost.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

// Steps that follow each other and have equal transfers.
struct StepRange {
  uint32_t first = 0, last = 0;
  uint64_t messages = 0;      // in each step
  uint64_t largest = 0;       // chunks of the largest transfer between two ranks
  uint64_t most = 0;          // chunks that the busiest rank sends or receives, whichever are more
  std::vector<Transfer> who;  // the first transfers of step `first`, by sender; at most kShownTransfers
};

inline constexpr size_t kShownTransfers = 4;

struct Summary {
  uint64_t messages = 0;
  uint64_t least_sent = 0, most_sent = 0;          // chunks, over all ranks
  uint64_t least_received = 0, most_received = 0;  // chunks, over all ranks
  // On one switch with links of equal speed each step takes α and the time for its `most` chunks. This is their sum.
  uint64_t star_chunks = 0;
  std::vector<StepRange> steps;
};

// Returns how many slices of the schedule's mean size make up a block. 1 for a schedule without messages.
double slices_per_vector(const Schedule& schedule);

// InvalidArgument: as Messages::make().
absl::StatusOr<Summary> summarize(const Schedule& schedule);

}  // namespace gleaner::collective
