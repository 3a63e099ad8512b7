// OwnerTimes models how long owners take to sum a tensor, as the planner (common/plan/partitioner.h) cuts and deals a
// tensor that is planned alone. Pure.
//
// An owner of x bytes that has p bytes in a partition receives the contributions to its first partition, min(x, p)
// bytes, before it sends a result. Then links carry contributions and results at the same time. So a link takes the
// time of its contributions to all first partitions, then that of their results, and the time in which its busier
// direction carries the rest. The slowest link counts:
//
//   t = max over links of (contributions(first) + results(first) + busy(all) - busy(first))
//
// Where processors take time for each message (topology::Host), that of the messages of first partitions is added, and
// of the call at a worker (common/netsim/processors.h), and the rest takes the longer of busy(all) - busy(first) and
// the time of processors for its messages. The slowest processor counts.
//
// The bytes of a link are those of common/plan/link_loads.h. A tensor with one partition for each owner has only first
// ones, so its two phases follow each other. For many partitions, t is near the bound of common/plan. Shares are the
// planner's (plan::shares_with_uplinks()).
//
// Latencies are not counted. On one switch, t differs from the simulation (common/netsim/plan_run.h) by less than 3 %
// for nine tenths of the random fleets of the test, and by less than 20 % for all of them. With overheads of up to
// 20 us it differs by less than 20 % for eight tenths, and is between 0.65 and 1.5 times of it for all.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/link_loads.h"
#include "common/topology/topology.h"

namespace gleaner::strategy {

class OwnerTimes {
 public:
  // Members are hosts as in plan::bound_with_uplinks(), whose errors it has. `push_ratio`: bytes of a contribution for
  // each byte of a result.
  static absl::StatusOr<OwnerTimes> make(const topology::Topology& topology, uint32_t workers, uint32_t summers,
                                         double push_ratio);

  // Returns the time of a tensor in partitions of at most `partition_bytes`. Each owner has its share of the tensor,
  // but at least `least_bytes`, so a small tensor has few owners. Cost: that of LinkLoads::of().
  double seconds(double bytes, double partition_bytes, double least_bytes) const;

  // Returns the time for each byte of a tensor in very many partitions of this size.
  double stream_seconds_per_byte(double partition_bytes) const;

 private:
  struct Owner {
    double share = 0;
    uint32_t member = 0;
  };

  // Returns how long the slowest processor takes for all messages. `partitions`: that each member owns.
  double processor_seconds(std::span<const double> partitions) const;

  explicit OwnerTimes(plan::LinkLoads loads) : loads_(std::move(loads)) {}

  plan::LinkLoads loads_;
  std::vector<double> overheads_;  // by member, in seconds; all 0: processors take no time
  uint32_t workers_ = 0;
  double push_ratio_ = 1;
  double links_seconds_per_byte_ = 0;  // of a tensor in very many partitions
  std::vector<Owner> owners_;          // with a share above 0, the largest first
};

}  // namespace gleaner::strategy
