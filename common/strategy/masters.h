// How much each host of the two-level strategy sends for a number of chunks that it masters, and which numbers suit the
// hosts' bandwidths. Source: PLink's Quicktune, Luo §4.2.3, with exact terms. Pure.
//
// Each way, a rank i in a group of |G(i)| ranks, of |G| groups, carries per chunk:
//
//   local master that is not global   |G(i)|                  its |G(i)| - 1 members and the global master
//   global master                     |G(i)| - 1 + |G| - 1    its members and the local masters of other groups
//   none of both                      1                       its local master
//
// The printed term, S(c)(LM |G(i)| + GM |G|), counts the rank itself, and leaves out the chunks of others.
#pragma once

#include <cstdint>
#include <vector>

#include "common/collective/schedule.h"
#include "common/collective/two_level.h"

namespace gleaner::strategy {

// Chunks for each rank, on average, of a two-level whose ranks master different numbers: enough for numbers that follow
// the links within a few percent.
inline constexpr uint32_t kChunksOfEachRank = 8;

// Returns numbers that are nearly equal within a group, and between groups in proportion to their sizes, for `chunks`
// chunks. Requires groups that check_groups() accepts, and chunks >= 1.
collective::MasterCounts even_masters(const collective::Groups& groups, uint32_t chunks);

// Returns the chunks that each rank carries each way in a step.
std::vector<double> loads_of(const collective::MasterCounts& counts, const collective::Groups& groups);

// Returns the longest time of a rank: its load divided by its bandwidth.
double longest_time(const collective::MasterCounts& counts, const collective::Groups& groups,
                    const std::vector<double>& bandwidths);

// Returns numbers with which the longest time of a rank, its load divided by its bandwidth, is nearly the least. Begins
// with numbers in proportion to the bandwidths, of groups for global and of ranks for local masters, as Quicktune does,
// and then moves chunks away from the rank that takes longest, one or two at a time, as long as that helps, and then
// away from the slowest of the others. Does so from even numbers, too, and takes the better result. `bandwidths`: by
// rank, all above 0, in any unit.
collective::MasterCounts quicktune(const collective::Groups& groups, uint32_t chunks,
                                   const std::vector<double>& bandwidths);

}  // namespace gleaner::strategy
