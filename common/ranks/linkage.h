// The tree of average linkage: at first each host is a cluster, then the two clusters with the least mean distance
// between their hosts become one, and so on (Sokal and Michener 1958). Pure.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/ranks/embedding.h"

namespace gleaner::ranks {

class Linkage {
 public:
  // Takes time in proportion to the square of the number of hosts, by chains of nearest neighbours (Murtagh 1983).
  explicit Linkage(const Distances& distances);

  // Returns the group of each host if the tree is cut into this number of groups, from 1 to the number of hosts.
  std::vector<uint32_t> cut(uint32_t groups) const;

 private:
  struct Merge {
    double distance = 0;
    uint32_t a = 0, b = 0;  // a host of each cluster
  };

  uint32_t hosts_;
  std::vector<Merge> merges_;  // nearest first
};

}  // namespace gleaner::ranks
