// Functions that format numbers for JSON. A value that need not be whole is written as a string.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner::api {

int64_t whole_number(double value);                  // rounds to the nearest; 0 for negative values and NaN
std::string cpu_quantity(double cpus);               // rounds cores to the nearest thousandth: "4", "250m"
std::string decimal_text(double value);              // six decimal places, at most 1e15, at least 0: "0.972"
std::string bandwidth_text(double bits_per_second);  // exact to one bit per second: "25Gbit", "1500Mbit"

// Convert between ascending indexes and their text, in the format of a Kubernetes Job's completedIndexes. For example,
// the text of {1, 3, 4, 5} is "1,3-5". A text of indexes that are not below `limit`, or not ascending, is
// InvalidArgument.
std::string indexes_text(const std::vector<uint32_t>& indexes);
absl::StatusOr<std::vector<uint32_t>> parse_indexes(absl::string_view text, uint32_t limit);

}  // namespace gleaner::api
