// The racks of a network, and whether a sum in two levels, in the racks and then between them, pays. Pure.
//
// PHub (Luo §2.3) finds that a hierarchical reduction pays, for R racks of N workers, if
//
//   N(R-1) / (R B_core)  >  max(N / B_PBox, 1 / B_worker) + C
//
// The left side is the time in which the sum of a flat strategy crosses racks, per byte of the vector. The right side
// is that of the two levels: within the racks, and C across them. C follows from what is measured, by the α–β model:
// (R-1)/R bytes per byte of the vector on the slowest link between the masters, and the latency of the steps that the
// flat strategy does not have.
//
// Here a worker is the master of its rack (common/collective/racks.h), racks may differ in size and speed, and each
// term is what a link carries each way in a whole step, where partitions follow each other, so that links of both
// levels work at the same time. With N_r workers in rack r, whose master has the link P_r, whose slowest other worker
// has W_r, and whose uplink is U_r, per byte:
//
//   across racks, flat   the bound of plan/uplinks.h: the uplinks carry N_r + (n - 2 N_r) x_r for the shares x_r of the
//                        racks, which are 2 N(R-1)/R for equal racks
//   within racks         max over r of ((N_r - 1) / P_r, 1 / W_r)
//   C                    2 (R-1)/R on the master's and the uplink's links, so 2 (R-1)/R / P_r more on that of the
//                        master, and (2 R - 4) latencies across racks and 2 within more than in a flat strategy
//
// A ring in the order of the racks is flat, too: it carries 2 (n-1)/n on every link, once each way on an uplink, and
// has 2 (n-1) latencies. So racks pay if they take less time than both. These terms explain a verdict, which the times
// of candidates.h give.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/topology/network.h"

namespace gleaner::strategy {

// Returns the racks of hosts 0 to `hosts` - 1: those that share their outermost place or, if one has no place of two
// numbers, their switch. Racks are in the order of their first hosts, and hosts ascend. Empty: there is only one rack,
// or a host has neither.
collective::Groups racks_of(const topology::Topology& topology, uint32_t hosts);

// Returns {number of racks, hosts in each} if the racks have equally many hosts, at least two; else an empty list.
std::vector<uint32_t> equal_stages(const collective::Groups& racks);

// A rack, with bandwidths in bit/s each way.
struct Rack {
  uint32_t workers = 0;
  double master = 0;         // the link of the first worker
  double slowest_other = 0;  // the slowest link of the others; infinite if there is none
  double uplink = 0;         // the slowest link that all paths to other racks have in common; infinite if there is none
};

// The times of the ways to sum, for vectors of any size.
struct RackTimes {
  double flat_seconds_per_byte = 0;    // the left side
  double within_seconds_per_byte = 0;  // of the right side, within racks
  double across_seconds_per_byte = 0;  // of the right side, between racks: the bytes of C
  // The right side: links of both levels work at the same time, but a master's link serves both.
  double two_level_seconds_per_byte = 0;
  double ring_seconds_per_byte = 0;
  double flat_latency_seconds = 0;
  double two_level_latency_seconds = 0;
  double ring_latency_seconds = 0;

  // Returns whether the condition holds for tensors in very many partitions, for which latencies do not count.
  bool holds() const { return std::min(flat_seconds_per_byte, ring_seconds_per_byte) > two_level_seconds_per_byte; }
};

// Describes the racks that racks_of() has found. The master of a rack is its worker with the fastest link.
std::vector<Rack> describe_racks(const topology::Network& network, const collective::Groups& racks);

// Compares the flat strategies, summers colocated with all workers and no others, and a ring, with racks. Requires two
// racks or more. Errors are those of plan::bound_with_uplinks().
absl::StatusOr<RackTimes> compare_racks(const topology::Network& network, const collective::Groups& racks);

}  // namespace gleaner::strategy
