// The bandwidth model. It gives the best possible step time (the bound), and the share of the gradient that each summer
// owns when the step takes that time.
//
// Machines are full duplex. In each step, worker i moves M + (n-2)·x_i bytes each way (it pushes M - x_i, and sends the
// x_i that it sums to the n-1 other workers), and CPU summer j moves n·y_j, with Σx + Σy = M. The step takes as long as
// the slowest machine's traffic divided by its bandwidth.
//
// If workers push r bytes for each byte of the result (Encoding::contribution), the directions differ: worker i sends
// r·(M - x_i) + (n-1)·x_i bytes and receives M - x_i + r·(n-1)·x_i, and CPU summer j receives r·n·y_j. The busier
// direction counts.
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

// The greatest push ratio, and the reciprocal of the least one. fp32 sums of 16-bit values have 2; signs have 1 / 7.8.
inline constexpr double kMaxPushRatio = 8;

struct Fleet {
  std::vector<double> worker_bits_per_second;  // n >= 1 values in [kMinBitsPerSecond, kMaxBitsPerSecond]
  std::vector<double> summer_bits_per_second;  // k >= 0 values in the same range; n + k <= kMaxMembers
  // r: bytes that workers push for each byte of the result, from 1 / kMaxPushRatio to kMaxPushRatio.
  double push_ratio = 1;
  uint32_t n() const { return static_cast<uint32_t>(worker_bits_per_second.size()); }
  uint32_t k() const { return static_cast<uint32_t>(summer_bits_per_second.size()); }
  double bits_per_second(size_t member) const {  // workers come first
    return member < n() ? worker_bits_per_second[member] : summer_bits_per_second[member - n()];
  }
};

double sum(const std::vector<double>& values);

// Returns the least bandwidth of a worker, in bits per second.
double slowest_worker(const Fleet& fleet);

// Returns OK if the fleet is within the limits above. All functions below require that.
absl::Status validate(const Fleet& fleet);

// Returns the bound: the least possible step time in seconds for `bytes` of gradient per worker.
double bound_seconds(const Fleet& fleet, double bytes);

// Returns the least step time that the slowest worker's own gradient allows, whatever the other machines do.
double slowest_worker_seconds(const Fleet& fleet, double bytes);

// Returns the fraction of the stream that each member's summer should own to reach bound_seconds(), workers first. The
// fractions add up to 1. If several splits reach the bound, the fractions are in proportion to the most that each
// member could own within it. If workers must own a part, because their pushes fill their links otherwise, only the
// rest is divided in that proportion. A fraction is 0 or at least 1e-9.
std::vector<double> shares(const Fleet& fleet);

// Returns the bytes that each member moves in its busier direction when member m's summer owns owned[m] bytes; workers
// first.
std::vector<double> traffic_bytes(const Fleet& fleet, const std::vector<uint64_t>& owned);

// Returns the step time in seconds when member m's summer owns owned[m] bytes.
double step_seconds(const Fleet& fleet, const std::vector<uint64_t>& owned);

}  // namespace gleaner::plan
