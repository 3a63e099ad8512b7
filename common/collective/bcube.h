// The BCube all-reduce with radix B among n = B^k ranks: k rounds, in round i of which each rank exchanges with the
// B - 1 ranks whose numbers differ from its own only in digit i to base B. It sends each of them S / B^(i+1) of the S
// bytes and keeps the sum of the part of its own. Then the rounds run backwards and copy. Each rank sends 2(n-1)/n of
// the vector, in 2k steps. Radix 2 has the exchanges of halving-doubling.
//
// Source: Luo §5.2.1 and §1.1.5. §1.1.5 prints S / B^i for round i; only S / B^(i+1) agrees with §5.2.1 and with the
// sum in §1.1.5. The formula of §5.2.1 lets k run from 1 to B; a rank has the B - 1 peers k = 1 … B - 1, and as digits
// wrap, peer j + k·B^i means digit i of j advanced by k modulo B.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

// Returns the radix that bcube() uses if none is given: 4 if ranks is a power of 4 (Luo §6.3 uses it), else the least
// radix of which ranks is a power, which is `ranks` itself for most counts. ranks >= 1; 2 for one rank.
uint32_t default_radix(uint32_t ranks);

// InvalidArgument: ranks is no power of radix, or radix < 2; the message names radixes that fit. One rank needs no
// round.
absl::StatusOr<Schedule> bcube(uint32_t ranks, uint32_t radix, OnlyRank only = {});

}  // namespace gleaner::collective
