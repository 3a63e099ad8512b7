// Finds groups of near hosts from the distances of some pairs of hosts: in a large cluster nobody measures all pairs.
// near_groups.h finds them better where all distances are known. Pure.
//
// The logarithm of a distance is one of two levels, near or far, with normal errors of one standard deviation;
// some may be anything between the least and the greatest. A part w of the pairs is near. Levels, deviation and parts
// are those that explain the distances best, found by expectation and maximization from several starts
// (Dempster, Laird and Rubin 1977). There are two levels if they have a shorter description than a single one
// (near_groups.h).
//
// At first each host is a group. The two groups become one whose known distances say most that they are one: the sum of
// the logarithms of the odds that each is near. Its least value is the logarithm of (1 - w) / w, since two groups are
// rarely one. Then each host moves to the group that its own distances suggest most. So a single wrong distance joins
// nothing, if others tell better.
#pragma once

#include <cstdint>
#include <span>

#include "common/ranks/grouping.h"

namespace gleaner::ranks {

struct PairDistance {
  uint32_t a = 0, b = 0;  // two different hosts
  double distance = 0;    // above 0, in any unit
};

// Returns the groups, ordered by their first hosts; a single group of all hosts if the distances have one level. Hosts
// of which no near host is known are alone. A pair occurs once. Takes time in proportion to the number of pairs times
// the logarithm of the number of hosts, and less than a second for 5,000 hosts with 64 pairs each.
Groups linked_groups(uint32_t hosts, std::span<const PairDistance> pairs);

}  // namespace gleaner::ranks
