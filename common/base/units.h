// Functions that parse and format bandwidths, sizes and durations as people write them.
#pragma once

#include <cstdint>
#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gleaner {

// In all units B is a byte and b a bit; other letters may be small or capital.

// Parses "25Gbit", "200mbit", "1.5Gb/s" or "100000000" (bits per second). Prefixes are decimal, as with tc and vendors.
// The result is finite and > 0.
absl::StatusOr<double> parse_bits_per_second(absl::string_view text);

// Parses "4MiB", "64KiB", "4M" (4MiB), "1MB" (decimal) or "4096". The result is a whole number of bytes.
absl::StatusOr<uint64_t> parse_bytes(absl::string_view text);

std::string format_bits_per_second(double bits_per_second);  // "25 Gbit/s"
std::string format_bytes(double bytes);                      // "4.00 MiB"
// "48.75 MiB instead of 97.49 MiB (2.00 times fewer)", or "97.49 MiB" unless `others` are more.
std::string format_bytes_instead_of(double bytes, double others);
std::string format_seconds(double seconds);  // "12.3 ms"

}  // namespace gleaner
