// Divides embedded hosts into groups that are balanced and whose hosts are near each other, for two-level aggregation.
// Source: Luo §4.2.1: k-means with a least size of clusters (Bradley, Bennett and Demiriz 2000) from k-means++ centres,
// several times. Pure.
//
// Each round assigns hosts to centres such that the sum of squared distances is least among all assignments whose group
// sizes are within the limits. It begins with the nearest centre of each host, and then moves hosts along the shortest
// chain of groups from a group that is too large to one that has room, or to one that is too small.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/ranks/embedding.h"
#include "common/ranks/rank_map.h"

namespace gleaner::ranks {

using collective::Groups;  // of hosts, in ascending order in each group

struct GroupingOptions {
  uint32_t groups = 0;  // 1 or more; balanced_group_count() is the usual number
  // Balance elasticity: with n hosts in k groups, a group has at least n/k / elasticity hosts and at most n/k ·
  // elasticity, rounded. 1: sizes differ by one at most. From 1 to 2.
  double elasticity = 1;
  uint32_t starts = 10;
  uint64_t seed = 1;
};

// Returns the number of groups that makes the busiest host of two-level aggregation send least: about √hosts (Eq. 4.2).
uint32_t balanced_group_count(uint32_t hosts);

// Returns the best of `starts` groupings: the one whose sizes differ least, then the one with the least sum of squared
// distances. Groups are ordered by their first host. InvalidArgument names the option that is out of range.
absl::StatusOr<Groups> group(const Embedding& embedding, const GroupingOptions& options);

// Returns the map that gives consecutive ranks to each group.
RankMap map_of(const Groups& groups);

}  // namespace gleaner::ranks
