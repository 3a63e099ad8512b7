// Finds the groups of near hosts that explain noisy distances best, and says how sure they are. Pure.
//
// The logarithm of a distance is one of two levels, near within a group and far across groups, with normal errors of
// one standard deviation; one distance in twenty may be anything between the least and the greatest. Three kinds of
// explanation compete:
//
//   one      all distances have one level
//   slow     some hosts are slow, and far from every host: their own links say so, and no group
//   groups   hosts of a group are near each other
//
// The best explanation has the shortest description (Rissanen 1978): the negative logarithm of the likelihood of the
// distances, plus half the logarithm of their number for each level and the deviation, plus the logarithm of the number
// of ways to choose the groups, or the slow hosts. So groups that only errors suggest cost more than they explain.
// Groups of even sizes, which differ by one at most, have half of the prior probability.
//
// Groups are found from many starts, for each number of groups: the cuts of the tree of average linkage, and with up to
// 128 hosts k-means on embedded hosts (grouping.h, Luo §4.2.1). From each start hosts move, hosts change places and
// groups merge while the description gets shorter.
//
// The description lengths of other explanations say how probable each one is, by Bayes' rule: those from other starts,
// and those in which one host is elsewhere, two hosts have changed places, or two groups are one. The confidence is the
// probability of the best one.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ranks/embedding.h"
#include "common/ranks/grouping.h"

namespace gleaner::ranks {

struct NearGroups {
  Groups groups;          // ordered by their first hosts; one group of all hosts if `one` or `slow` is best
  double confidence = 1;  // from 0 to 1
};

// Returns the best explanation of distances, which are positive and symmetric. With the same distances it is the same
// on every machine. InvalidArgument: as embed().
absl::StatusOr<NearGroups> near_groups(const Distances& distances);

// The median distance across groups must be longer than within groups by this factor, or hosts count as equally near.
inline constexpr double kLeastContrast = 1.1;
// A grouping that is less probable is not sure, so it does not count.
inline constexpr double kLeastConfidence = 0.7;

struct SureGroups {
  Groups groups;        // a single one: hosts count as equally near
  bool unsure = false;  // distances tell hosts apart, but no grouping has kLeastConfidence
};

// Returns near_groups() if they have kLeastContrast and kLeastConfidence, else one group. Errors: as near_groups().
absl::StatusOr<SureGroups> sure_groups(const Distances& distances);

// Returns the distances, each with five quarters of the median at most: a single measurement may be far off, and the
// embedding minimizes squares.
Distances limited(const Distances& distances);

// Exchanges hosts of different groups while the groups then explain the distances better. Groups keep their sizes.
Groups improve_by_exchanges(const Distances& distances, Groups groups);

}  // namespace gleaner::ranks
