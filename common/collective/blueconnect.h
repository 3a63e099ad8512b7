// The BlueConnect all-reduce for n = p_0 · p_1 ⋯ ranks: a reduce-scatter in stages, then an all-gather through the same
// stages backwards. The groups of stage i have the p_i ranks whose numbers differ only in digit i of the mixed radix
// system p_0, p_1, … (digit 0 is the least significant), so that stage 0 runs among consecutive ranks, and stage i
// moves 1 / (p_0 ⋯ p_(i-1)) of the vector. Where p_i is a power of two a stage halves recursively, else its groups are
// rings.
//
// Source: BlueConnect §3, with Eq. 5 read as n = the product of all p_i: as printed, the two sides differ by a factor.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

// Returns the prime factors of a number, in ascending order. Empty for 1.
std::vector<uint32_t> prime_factors(uint32_t number);

// Requires that the product of the factors fits into uint32_t. InvalidArgument: a factor is below 2.
absl::StatusOr<Schedule> blueconnect(const std::vector<uint32_t>& factors);

// Returns the seconds that BlueConnect takes on a hierarchical network by Eq. 7, with the minimum over 0 <= j <= i as
// in Eq. 6 (the print excludes j = i, so that w_i would never count):
//   2 Σ_i T(p_i, N / (p_0 ⋯ p_(i-1)), α, min over j <= i of w_j / (p_0 ⋯ p_(j-1))).
// T is (p - 1) α + (p - 1)/p · N/w for rings, and log2(p) α + (p - 1)/p · N/w for powers of two (Eq. 1).
// `bits_per_second[i]`: w_i, the bandwidth of tier i of the network: of the link that all p_0 ⋯ p_(i-1) ranks below it
// share. Requires one for each factor.
double blueconnect_seconds(const std::vector<uint32_t>& factors, double bytes, double alpha_seconds,
                           const std::vector<double>& bits_per_second);

}  // namespace gleaner::collective
