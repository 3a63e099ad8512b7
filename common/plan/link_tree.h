// The links of a job's members, if they form a tree. A link parts the members in two, so the bytes that cross it follow
// from the shares of the owners on its one side (uplinks.h). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/topology/topology.h"

namespace gleaner::plan {

// A link with everything behind it, as seen from the root.
struct Branch {
  uint32_t link = 0;           // in the topology
  double bits_per_second = 0;  // the slower direction
  double workers = 0;          // behind the link
  bool is_member = false;      // whether the node at the link's end is a member
  bool owns = false;           // whether a member is behind the link
  std::vector<uint32_t> children;
  // The fractions of the vector that members behind the link may own together.
  double least = 0, most = 1;
};

// The tree of branches, whose root is a switch, or the only host. Children come after their parents.
class LinkTree {
 public:
  // Returns nothing if several paths lead to a node.
  static std::optional<LinkTree> find(const topology::Topology& topology, uint32_t workers, uint32_t members);

  // Returns whether all links can carry their bytes within `seconds_per_bit` seconds for each bit of the vector, and
  // sets the limits of each branch.
  bool fits(double seconds_per_bit);
  // Distributes the vector within the limits that the last call of fits() has set. Returns the fraction of each branch.
  std::vector<double> distribute() const;
  // Returns the fraction that a host owns itself.
  double own(uint32_t host, const std::vector<double>& fraction) const;

  // Replaces what each host owns, in the element of its branch, by what all hosts behind each branch own.
  void add_up(std::vector<double>& owned) const;

  // Returns the seconds for which a branch's link is busy for each bit of the vector.
  double busy(const Branch& branch, double fraction) const {
    return (branch.workers + (workers_ - 2 * branch.workers) * fraction) / branch.bits_per_second;
  }
  const std::vector<Branch>& branches() const { return branches_; }
  uint32_t branch_of(uint32_t host) const { return branch_of_[host]; }
  double workers() const { return workers_; }
  double slowest_link() const;

 private:
  void limit(Branch& branch, double seconds_per_bit) const;

  double workers_ = 0;
  std::vector<Branch> branches_;     // the first is the root, without a link
  std::vector<uint32_t> branch_of_;  // by node
};

}  // namespace gleaner::plan
