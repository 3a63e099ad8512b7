// The links of a job's members, if they form a tree. A link parts the members in two, so the bytes that cross it follow
// from the shares of the owners on its one side (uplinks.h). Pure.
//
// If workers push r bytes for each byte of the result (Encoding::contribution), a link with n_S of the n workers behind
// it carries r·n_S·(1 - X) + (n - n_S)·X away from them, for each byte of the vector, and n_S·(1 - X) + r·(n - n_S)·X
// towards them. X is the fraction that members behind the link own. The busier direction counts (BytePS §4.1; model.h
// has the case of a member's own link).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "common/topology/topology.h"

namespace gleaner::plan {

// A link with everything behind it, as seen from the root.
struct Branch {
  uint32_t parent = 0;         // the next branch on the way to the root; the root's own is not used
  uint32_t link = 0;           // in the topology
  double bits_per_second = 0;  // the slower direction; infinite: the link carries all
  double workers = 0;          // behind the link
  bool is_member = false;      // whether the node at the link's end is a member
  bool owns = false;           // whether a member is behind the link
  // The fractions of the vector that members behind the link may own together.
  double least = 0, most = 1;
};

// The tree of branches, whose root is a switch, or the only host. Children come after their parents.
class LinkTree {
 public:
  // Returns nothing if several paths lead to a node.
  static std::optional<LinkTree> find(const topology::Topology& topology, uint32_t workers, uint32_t members);
  // Takes branches of which the first is the root. Each comes after its parent, and has only its own worker and member.
  explicit LinkTree(std::vector<Branch> branches);

  // Sets r, the bytes that workers push for each byte of the result; it is 1 before.
  void set_push_ratio(double push_ratio) { push_ratio_ = push_ratio; }

  // Returns whether all links can carry their bytes within `seconds_per_bit` seconds for each bit of the vector, and
  // sets the limits of each branch.
  bool fits(double seconds_per_bit);
  // Returns the least time for which fits(), and sets the limits for it. Above `most` the result is infinite, and the
  // limits are undefined.
  double least_seconds_per_bit(double most = std::numeric_limits<double>::infinity());
  // Distributes the vector within the limits that the last call of fits() has set. Returns the fraction of each branch.
  std::vector<double> distribute() const;
  // Returns the fraction that the node of each branch owns itself.
  std::vector<double> own(std::vector<double> fraction) const;

  // Replaces what each host owns, in the element of its branch, by what all hosts behind each branch own.
  void add_up(std::vector<double>& owned) const;

  // Returns the seconds for which a branch's link is busy for each bit of the vector.
  double busy(const Branch& branch, double fraction) const;
  const std::vector<Branch>& branches() const { return branches_; }
  uint32_t branch_of(uint32_t host) const { return branch_of_[host]; }
  double workers() const { return branches_.front().workers; }

 private:
  double slowest_link() const;
  void limit(Branch& branch, double seconds_per_bit, double pushes, double results) const;

  double push_ratio_ = 1;
  std::vector<Branch> branches_;     // the first is the root, without a link
  std::vector<uint32_t> branch_of_;  // by node
};

}  // namespace gleaner::plan
