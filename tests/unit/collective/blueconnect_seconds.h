// The time of BlueConnect by its paper, with which costs and simulations of its schedule are compared.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace gleaner::collective {

// Returns the seconds that BlueConnect takes on a hierarchical network by Eq. 7, with the minimum over 0 <= j <= i as
// in Eq. 6 (the print excludes j = i, so that w_i would never count):
//   2 Σ_i T(p_i, N / (p_0 ⋯ p_(i-1)), α, min over j <= i of w_j / (p_0 ⋯ p_(j-1))).
// T is (p - 1) α + (p - 1)/p · N/w for rings, and log2(p) α + (p - 1)/p · N/w for powers of two (Eq. 1).
// `bits_per_second[i]`: w_i, the bandwidth of tier i of the network: of the link that all p_0 ⋯ p_(i-1) ranks below it
// share. Requires one for each factor.
inline double blueconnect_seconds(const std::vector<uint32_t>& factors, double bytes, double alpha_seconds,
                                  const std::vector<double>& bits_per_second) {
  double seconds = 0, below = 1;  // below: p_0 ⋯ p_(i-1)
  double rate = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < factors.size(); ++i) {
    const uint32_t p = factors[i];
    rate = std::min(rate, bits_per_second[i] / below);
    const double steps = std::has_single_bit(p) ? std::countr_zero(p) : p - 1;
    seconds += 2 * (steps * alpha_seconds + (p - 1.0) / p * (bytes / below) * 8 / rate);
    below *= p;
  }
  return seconds;
}

}  // namespace gleaner::collective
