// Bandwidths, sizes and durations as people write them.
#pragma once

#include <cstdint>
#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gleaner {

// "25Gbit", "200mbit", "1.5Gbit", "100000000" (bits per second): decimal prefixes, as tc and vendors use them; the
// result is finite and > 0.
absl::StatusOr<double> parse_bits_per_second(absl::string_view text);

// "4MiB", "64KiB", "1GiB", "1MB" (decimal), "4096": the result is a whole number of bytes.
absl::StatusOr<uint64_t> parse_bytes(absl::string_view text);

std::string format_bits_per_second(double bits_per_second);  // "25 Gbit/s"
std::string format_bytes(double bytes);                      // "4.00 MiB"
std::string format_seconds(double seconds);                  // "12.3 ms"

}  // namespace gleaner
