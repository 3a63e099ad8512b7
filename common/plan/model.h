// The bandwidth model. It gives the best possible step time (the bound), and the share of the gradient that each summer
// owns when the step takes that time.
//
// Machines are full duplex. In each step, worker i moves M + (n-2)·x_i bytes each way (it pushes M - x_i, and sends the
// x_i that it sums to the n-1 other workers), and CPU summer j moves n·y_j, with Σx + Σy = M. The step takes as long as
// the slowest machine's traffic divided by its bandwidth.
// Source: BytePS §2.3 and §4.1, Eq. 1-6 (with the factor n that is missing from Eq. 4 in print). docs/model.md derives
// the formulas for unequal bandwidths.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::plan {

// Limits of a bandwidth. Real links lie within them, and no formula below over- or underflows within them.
inline constexpr double kMinBitsPerSecond = 1;
inline constexpr double kMaxBitsPerSecond = 1e18;

struct Fleet {
  std::vector<double> worker_bits_per_second;  // n >= 1 values in [kMinBitsPerSecond, kMaxBitsPerSecond]
  std::vector<double> summer_bits_per_second;  // k >= 0 values in the same range; n + k <= kMaxMembers
  uint32_t n() const { return static_cast<uint32_t>(worker_bits_per_second.size()); }
  uint32_t k() const { return static_cast<uint32_t>(summer_bits_per_second.size()); }
  double bits_per_second(size_t member) const {  // workers come first
    return member < n() ? worker_bits_per_second[member] : summer_bits_per_second[member - n()];
  }
};

// Returns OK if the fleet is within the limits above. All functions below require that.
absl::Status validate(const Fleet& fleet);

// Returns the bound: the least possible step time in seconds for `bytes` of gradient per worker.
double bound_seconds(const Fleet& fleet, double bytes);

// Returns the fraction of the stream that each member's summer should own to reach bound_seconds(), workers first. The
// fractions add up to 1. If several splits reach the bound, the fractions are in proportion to the most
// that each member could own within it. A fraction is 0 or at least 1e-9.
std::vector<double> shares(const Fleet& fleet);

// Returns the bytes that each member moves each way when member m's summer owns owned[m] bytes; workers first.
std::vector<double> traffic_bytes(const Fleet& fleet, const std::vector<uint64_t>& owned);

// Returns the step time in seconds when member m's summer owns owned[m] bytes.
double step_seconds(const Fleet& fleet, const std::vector<uint64_t>& owned);

}  // namespace gleaner::plan
