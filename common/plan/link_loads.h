// LinkLoads tells how many bytes each channel of a network carries while the owners of a tensor sum it, for any split
// of the tensor among the owners. Every worker sends its contribution to each owner, and every owner its result to each
// worker, so each member takes as many bytes over a channel as it owns, times the number of its routes there.
//
// Where the links form a tree, the loads follow from the sums of what is owned behind each link (link_tree.h), which
// takes O(members). Elsewhere a message takes the route that cost models and the simulator give it: one of the shortest
// paths (collective::flow_between(), topology/paths.h), so a channel's load is a sum over the routes there. Pure. Safe
// for concurrent use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/link_tree.h"
#include "common/topology/topology.h"

namespace gleaner::plan {

// The most members for which routes are counted, since their number grows with the square of it.
inline constexpr uint32_t kMaxRoutedMembers = 2048;

class LinkLoads {
 public:
  // Bytes that a channel carries.
  struct Load {
    double pushes = 0;   // contributions
    double results = 0;  // sums
  };
  // A link that carries something for some split. `there` leads from the link's a to its b, `back` from b to a; in a
  // tree, one of both leads to the root.
  struct Link {
    uint32_t link = 0;  // in the topology
    double there_bits_per_second = 0;
    double back_bits_per_second = 0;
  };
  struct LinkLoad {
    Load there;
    Load back;
  };
  // The routes to and from one owner that lead over a channel.
  struct Routes {
    uint32_t owner = 0;
    uint32_t pushes = 0;
    uint32_t results = 0;
  };

  // Hosts are members as in bound_with_uplinks(). Requires that the topology has a host for each. InvalidArgument: the
  // links are no tree, and there are more than kMaxRoutedMembers.
  static absl::StatusOr<LinkLoads> make(const topology::Topology& topology, uint32_t workers, uint32_t members);

  const std::vector<Link>& links() const { return links_; }
  // Returns the load of each of links() when member m owns owned[m] bytes; members after the last owned one own
  // nothing.
  std::vector<LinkLoad> of(std::span<const double> owned) const;

  // The tree; null: the links are none.
  const LinkTree* tree() const { return tree_.has_value() ? &*tree_ : nullptr; }
  // Without a tree: the routes of each channel of links(), those of `there` and `back` in turn.
  const std::vector<std::vector<Routes>>& routes() const { return routes_; }

 private:
  void list_branches();
  void count_routes(const topology::Topology& topology, uint32_t workers, uint32_t members);

  std::optional<LinkTree> tree_;
  std::vector<Link> links_;                  // of a tree: by branch but the root
  std::vector<std::vector<Routes>> routes_;  // by link and direction
};

}  // namespace gleaner::plan
