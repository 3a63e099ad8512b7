// The bound of all strategies for an all-reduce on a network: no schedule, no plan of summers and no mixture of them
// takes less time, as long as members pass on contributions, sums and results, and no codes of several elements. Pure.
//
// Each worker must send each element at least once, as its contribution, and receive it once, as the result. All n
// workers together send it at least 2(n-1) times (Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms for
// clusters of workstations, 2009). If CPU summers take part, too, each saves the workers at most (n-2)/n of what it
// sends and receives itself: if n members send it an element and it sends each of them the result, it sends and
// receives 2n times and saves 2(n-2) times. So workers with the bandwidths B and CPU summers with the bandwidths C take
// at least
//
//   T = max( S / min B,  2(n-1) S / (ΣB + (n-2)/n ΣC) ),
//
// which is bound_seconds() of model.h. Where the two directions of links differ, their mean counts in the sums, and
// each direction alone gives a further bound, in which (n-2)/(n-1) replaces (n-2)/n.
//
// In a network the same holds for any partition of the members: a part with workers is one worker, a part with summers
// alone is a summer, and the bandwidth is that of all links between the part and the other nodes. So the racks with
// their uplinks give a bound, and so do the hosts with their links. The function finds the partition with the greatest
// bound among those that are made of the groups of host_groups.h.
// Dinkelbach's method finds it: for a given T, the partition with the greatest 2(n-1) - T/S·(ΣB + (n-2)/n ΣC) follows
// from the groups' own best partitions; T is then the bound of that partition, until T grows no more.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/topology/topology.h"

namespace gleaner::plan {

struct AllReduceBound {
  double seconds = 0;
  // The hosts, and the switches that name groups of hosts, whose links to the rest of the network bind. One: it alone
  // binds. Several: they do together. None: nothing must be sent.
  std::vector<uint32_t> limits;
};

// `host_of[member]` is the member's host, workers first; all differ. `bytes` is the size S of each worker's vector on
// its way: where partial sums are wider than results, the size of the results, so that the bound holds for any
// strategy. Cost: O(nodes + links).
AllReduceBound all_reduce_bound(const topology::Topology& topology, std::span<const uint32_t> host_of, uint32_t workers,
                                double bytes);

// Returns whose links bind, for people: "host-3's link", "the links of 8 hosts", "the uplinks of rack-0 and rack-1".
// Empty if none do.
std::string describe_limits(const AllReduceBound& bound, const topology::Topology& topology);

}  // namespace gleaner::plan
