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
absl::StatusOr<Schedule> blueconnect(const std::vector<uint32_t>& factors, OnlyRank only = {});

}  // namespace gleaner::collective
