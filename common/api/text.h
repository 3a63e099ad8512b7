// Functions that format numbers and texts for JSON. A value that need not be whole is written as a string.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner::api {

// The longest texts that the schemas in crds/ allow, in characters. to_json() shortens longer ones (shortened() in
// common/base/utf8.h), since the API server refuses an object with a single text that is too long.
inline constexpr size_t kMaxMessage = 32768;  // a text for people
inline constexpr size_t kMaxList = 4096;      // several names, such as the strategies of a plan
inline constexpr size_t kMaxGroup = 1024;     // of a Topology: 16 label values, of which each has at most 63 characters
inline constexpr size_t kMaxLabelKey = 317;   // prefix of 253 characters, slash, name of 63 characters
inline constexpr size_t kMaxEndpoint = 300;
inline constexpr size_t kMaxReason = 256;
inline constexpr size_t kMaxName = 253;  // of an object of Kubernetes
inline constexpr size_t kMaxId = 128;
inline constexpr size_t kMaxWord = 64;
inline constexpr size_t kMaxShortWord = 32;

// Returns `text`, shortened to `most` characters, for a field that must not be empty: "unknown" in place of nothing.
std::string required_text(absl::string_view text, size_t most);

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
