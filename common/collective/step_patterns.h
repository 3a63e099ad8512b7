// The messages of a schedule, summed up by step: what cost models and conflict counts read. Pure.
//
// A message whose receiver reduces has a partial sum. Partial sums of fp16 and bf16 travel as fp32, so their *partial
// width* is 2.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

// All messages from one rank to another within a step.
struct Transfer {
  uint32_t from = 0;    // a rank
  uint32_t to = 0;      // a rank
  uint32_t chunks = 0;  // those of partial sums times the partial width
  uint32_t messages = 0;
  bool operator==(const Transfer&) const = default;
};

// Steps with equal transfers. All steps of a ring are one pattern, and halving-doubling among 2^k ranks has k patterns.
struct StepPattern {
  std::vector<Transfer> transfers;  // by sender, then receiver
  std::vector<uint32_t> steps;
};

// Returns the patterns of a schedule, in the order of their first steps. InvalidArgument: as Messages::make(), or a
// rank receives before it sends in one step.
absl::StatusOr<std::vector<StepPattern>> step_patterns(const Schedule& schedule, uint32_t partial_width = 1);

}  // namespace gleaner::collective
