// Halving-Doubling with Rank Mapping: the rank map on which the halving-doubling all-reduce has at most one flow on
// each link of a BiGraph in every step. Source: EFLOPS §V-B, Algorithm 1. Pure.
//
// Ranks whose numbers have an even count of 1 bits go to one side of the BiGraph and the others to the other side, so
// the two ranks of a pair r, r XOR 2^s are always on different sides, where one link joins their switches.
//
// With N switches, the first N ranks take one host at each switch. They make up the base, here for N = 8 with a column
// for each switch of a side:
//
//   side 0:  0 3 5 6
//   side 1:  1 2 4 7
//
// Ranks jN to jN + N - 1, group j, take the j-th host at each switch. Their order is that of the base, with the sides
// exchanged if j has an odd count of 1 bits, and with the ranks of side 0 shifted left by j switches, cyclically. The
// shift gives the pairs of each group links of their own.
//
// Algorithm 1 has errors in print, which this code corrects: the first vector has N/2 entries, so the cyclic shift is
// (R_j[0] << j) | (R_j[0] >> (N/2 - j)), not N - j; group j's ranks begin at j·N, not i·N; and its names R_i and r_i
// stand for R_j.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/ranks/rank_map.h"
#include "common/topology/topology.h"

namespace gleaner::ranks {

// Returns the map for this number of ranks. InvalidArgument says what is missing: the topology is a BiGraph whose hosts
// have the place {side, switch, port}, with M hosts at each of N switches, M and N powers of two, M <= N/2; `ranks` is
// a power of two from 2 to M·N.
absl::StatusOr<RankMap> hdrm(const topology::Topology& topology, uint32_t ranks);

// Returns the map with which a search for this schedule should begin: that of hdrm() if the schedule is
// halving-doubling and the topology has one, otherwise nothing.
std::optional<RankMap> hdrm_start(const collective::Schedule& schedule, const topology::Topology& topology);

}  // namespace gleaner::ranks
