// The strategies that the ranks of `gleaner bench push-pull` expect (--strategy). Each rank sends its own as a number
// in its place of a sum, so that all ranks learn all expectations, and end with the same error if one is not met.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gleaner::cli {

// Returns the strategies that a rank can expect: summers, and all algorithms of schedules.
std::vector<std::string> expected_strategies();

// Returns the number that stands for a strategy. At least 1; that of no expectation, an empty string, is 1.
float number_of(const std::string& strategy);

// Checks the numbers of all ranks, in the order of their ranks, against the strategy by which the coordinator has a
// tensor summed. FailedPrecondition names the ranks that expect another one.
absl::Status check_expectations(std::span<const float> numbers, uint32_t local_ranks, const std::string& tensor,
                                const std::string& strategy);

}  // namespace gleaner::cli
