// The strategies by which the workers of a job can sum a tensor, each with its modelled time. Pure.
//
// Model. Tensors are cut into partitions, which follow each other through a strategy. So a tensor of m bytes in
// partitions of p bytes takes the time of one partition alone, and the time in which the busiest channel moves the
// rest:
//
//   t(m) = latency + alone · min(m, p) + stream · max(0, m - p)
//
// - A schedule (common/collective): latency and `alone` are those of its α–β cost, the sum over its steps of each
//   step's slowest message (Luo §5.2.1). `stream` is the time that the busiest channel needs for all its messages.
// - Summers: a contribution and a result are two messages one after the other. A partition alone passes the link of its
//   owner n - 1 times in and n - 1 times out (n times for a CPU summer); `alone` is that of the best owner. `stream` is
//   the bound of common/plan, which counts uplinks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "common/topology/paths.h"
#include "common/topology/topology.h"

namespace gleaner::strategy {

struct Model {
  double latency_seconds = 0;
  double alone_seconds_per_byte = 0;
  double stream_seconds_per_byte = 0;

  double seconds(double bytes, double partition_bytes) const;
};

struct Candidate {
  plan::ScheduleParameters parameters;  // algorithm kSummersStrategy, or one of common/collective
  Model model;
};

// Returns the candidates for n = `workers` workers, which are hosts 0 to n - 1 of the topology, and CPU summers, which
// are the hosts after them; summers come first. The others are every algorithm that serves n ranks: bcube with its
// default radix, blueconnect with the factorizations of n that are fastest by its Eq. 7 (the best 8 for large tensors
// and the best 4 for small ones), and, if the workers are in racks (racks.h), racks and two-level with these groups. A
// schedule has the ranks of its entry in `mapped` (rank_maps.h); without one, worker i has rank i, and groups are
// consecutive workers. InvalidArgument: there are fewer hosts than members, no worker, or the links are no tree.
absl::StatusOr<std::vector<Candidate>> candidates(const topology::Topology& topology, uint32_t workers,
                                                  uint32_t summers,
                                                  std::span<const plan::ScheduleParameters> mapped = {});

// Returns the latency of the longest path between a worker, which are hosts 0 to `workers` - 1, and a member, which are
// hosts 0 to `members` - 1.
double farthest_latency(const topology::Topology& topology, const topology::Paths& paths, uint32_t workers,
                        uint32_t members);

// Returns the candidate of one schedule for these workers, whose ranks are as the schedule says. InvalidArgument: the
// schedule does not serve them.
absl::StatusOr<Candidate> candidate_of(const topology::Topology& topology, uint32_t workers,
                                       const plan::ScheduleParameters& schedule);

// Returns the index of the candidate with the least time for a tensor; of equal ones the first. Requires one candidate.
size_t fastest(std::span<const Candidate> candidates, double bytes, double partition_bytes);

// A strategy takes the place of another one, and a schedule that of summers, only if it is faster by this factor.
inline constexpr double kNeededGain = 1.1;

// Returns the index of the candidate that should sum a new tensor: the fastest one, but summers, the first candidate,
// if they are nearly as fast (kNeededGain), since they also survive the loss of a summer and need no equal links.
size_t best(std::span<const Candidate> candidates, double bytes, double partition_bytes);

}  // namespace gleaner::strategy
