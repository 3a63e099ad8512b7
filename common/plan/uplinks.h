// The bound of a push_pull whose members hang in a tree of switches. Besides each member's own link, every link between
// switches can bind: the uplink of an oversubscribed rack, for example.
//
// A link parts the members in two. With n_S of the n workers on its one side, and X_S of the M bytes owned by the
// summers there, n_S·(M - X_S) bytes of contributions leave that side, and (n - n_S)·X_S bytes of results; as many
// enter it. So each direction of the link carries n_S·M + (n - 2·n_S)·X_S bytes. For a member's own link these are the
// terms of model.h. The least T for which all links can carry their bytes in time T is the bound. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/model.h"
#include "common/topology/topology.h"

namespace gleaner::plan {

struct UplinkBound {
  double seconds = 0;
  std::vector<double> shares;    // by member, workers first; the fractions add up to 1
  std::vector<uint32_t> limits;  // indexes of the links that are busy all the time with these shares
};

// Host i of the topology is member i: first `workers` workers, then `summers` CPU summers. Further hosts take no part.
// InvalidArgument: there are fewer hosts than members, no worker, or the links are no tree, so that paths are not
// unique.
absl::StatusOr<UplinkBound> bound_with_uplinks(const topology::Topology& topology, uint32_t workers, uint32_t summers,
                                               double bytes);

struct BusiestLink {
  uint32_t link = 0;   // its index in the topology
  double seconds = 0;  // how long it is busy in a step
};

// Returns the link that takes longest when member m's summer owns owned[m] bytes, workers first: its time is the step
// time. Errors as above.
absl::StatusOr<BusiestLink> busiest_link(const topology::Topology& topology, uint32_t workers,
                                         const std::vector<uint64_t>& owned);

// The tree of the members' links. A link comes after all links behind it, as seen from the root.
struct LinkTree {
  struct Link {
    double bits_per_second = 0;  // the slower direction; infinite at the root, which has no link
    double workers = 0;          // behind the link
    uint32_t above = 0;          // the index of the next link on the way to the root; its own at the root
  };
  std::vector<Link> links;        // the last one is the root's
  std::vector<uint32_t> link_of;  // by member: the index of its own link
};

// Errors as above.
absl::StatusOr<LinkTree> link_tree(const topology::Topology& topology, uint32_t workers, uint32_t summers);

// Returns the bandwidths of the members' own links: those of hosts 0 to workers + summers - 1, the slower direction. A
// host with several links has their sum. Errors as above.
absl::StatusOr<Fleet> fleet_of(const topology::Topology& topology, uint32_t workers, uint32_t summers);

}  // namespace gleaner::plan
