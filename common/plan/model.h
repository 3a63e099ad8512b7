// The bandwidth model: how fast a step can be, and how much each summer should own for that.
//
// Machines are full duplex. Each way and each step, worker i moves M + (n-2)·x_i bytes (it pushes M - x_i, and serves
// x_i to n-1 others) and CPU summer j moves n·y_j, with Σx + Σy = M. Step time is the slowest machine's traffic over
// its bandwidth.
// Source: BytePS §2.3 and §4.1, Eq. 1-6 (with the factor n that Eq. 4 lacks in print); unequal bandwidths are derived
// in docs/model.md.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::plan {

// Slower is nobody's link, faster is nobody's yet; in between, no formula below over- or underflows.
inline constexpr double kMinBitsPerSecond = 1;
inline constexpr double kMaxBitsPerSecond = 1e18;

struct Fleet {
  std::vector<double> worker_bits_per_second;  // n >= 1, each in [kMinBitsPerSecond, kMaxBitsPerSecond]
  std::vector<double> summer_bits_per_second;  // k >= 0, the same; n + k <= kMaxMembers
  uint32_t n() const { return static_cast<uint32_t>(worker_bits_per_second.size()); }
  uint32_t k() const { return static_cast<uint32_t>(summer_bits_per_second.size()); }
  double bits_per_second(size_t member) const {  // workers first
    return member < n() ? worker_bits_per_second[member] : summer_bits_per_second[member - n()];
  }
};

// Everything below needs a fleet that passes this.
absl::Status validate(const Fleet& fleet);

// The least possible step time in seconds for `bytes` of gradient per worker: the bound.
double bound_seconds(const Fleet& fleet, double bytes);

// Fractions of the stream that each member's summer owns, workers first, Σ = 1; reaches bound_seconds(). Where more
// than one split does, the slack is spread in proportion to what each could own. A share is 0 or at least 1e-9.
std::vector<double> shares(const Fleet& fleet);

// Bytes that each member moves each way when member m's summer owns owned[m] bytes; workers first.
std::vector<double> traffic_bytes(const Fleet& fleet, const std::vector<uint64_t>& owned);

// Step time in seconds of a concrete ownership, by the same model.
double step_seconds(const Fleet& fleet, const std::vector<uint64_t>& owned);

}  // namespace gleaner::plan
