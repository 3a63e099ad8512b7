// The bound of a push_pull whose members are hosts of a network. Besides each member's own link, every link between
// switches can bind: the uplink of an oversubscribed rack, for example.
//
// In a tree of links, each parts the members in two. With n_S of the n workers on its one side, and X_S of the M bytes
// owned by the summers there, n_S·(M - X_S) bytes of contributions leave that side, and (n - n_S)·X_S bytes of results;
// as many enter it. So each direction of the link carries n_S·M + (n - 2·n_S)·X_S bytes. For a member's own link these
// are the terms of model.h. The least T for which all links can carry their bytes in time T is the bound.
//
// In other networks each pair of hosts has a route, and the bound is a linear program over the shares (routed_bound.h).
// On a tree both give the same. Pure.
//
// `push_ratio` is the number of bytes that workers push for each byte of the result, as in model.h.
// bound_with_uplinks() takes it into account for trees only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/link_loads.h"
#include "common/plan/model.h"
#include "common/topology/topology.h"

namespace gleaner::plan {

struct UplinkBound {
  double seconds = 0;
  std::vector<double> shares;    // by member, workers first; the fractions add up to 1
  std::vector<uint32_t> limits;  // indexes of the links that are busy all the time with these shares
};

// Host i of the topology is member i: first `workers` workers, then `summers` CPU summers. Further hosts take no part.
// InvalidArgument: there are fewer hosts than members, no worker, or more than kMaxRoutedMembers members and no tree.
// Internal: rounding errors were too large for the linear program.
absl::StatusOr<UplinkBound> bound_with_uplinks(const topology::Topology& topology, uint32_t workers, uint32_t summers,
                                               double bytes, double push_ratio = 1);

struct BusiestLink {
  uint32_t link = 0;   // its index in the topology
  double seconds = 0;  // how long it is busy in a step
};

// Returns the link that takes longest when member m's summer owns owned[m] bytes, workers first: its time is the step
// time. Errors as above.
absl::StatusOr<BusiestLink> busiest_link(const topology::Topology& topology, uint32_t workers,
                                         const std::vector<uint64_t>& owned, double push_ratio = 1);

// Returns the loads of the links of these members. A caller that needs several results for the same members makes them
// once, for the following functions. Errors as above.
absl::StatusOr<LinkLoads> link_loads(const topology::Topology& topology, uint32_t workers, uint32_t summers);

// The same with loads that link_loads() has returned for these members.
absl::StatusOr<UplinkBound> bound_with_uplinks(const topology::Topology& topology, const LinkLoads& loads,
                                               uint32_t workers, uint32_t summers, double bytes, double push_ratio = 1);
BusiestLink busiest_link(const LinkLoads& loads, const std::vector<double>& owned, double push_ratio = 1);

// Returns the fraction of the vector that each member should own: shares() of model.h, or those of bound_with_uplinks()
// where these take less time. Errors as above.
absl::StatusOr<std::vector<double>> shares_with_uplinks(const topology::Topology& topology, const LinkLoads& loads,
                                                        uint32_t workers, uint32_t summers, double push_ratio);

// Returns the bandwidths of the members' own links: those of hosts 0 to workers + summers - 1, the slower direction. A
// host with several links has their sum. Errors as above.
absl::StatusOr<Fleet> fleet_of(const topology::Topology& topology, uint32_t workers, uint32_t summers);

}  // namespace gleaner::plan
