// run_schedule() simulates a schedule (common/collective/schedule.h) on a topology. Each rank executes its operations
// in order: a send hands its message to the connection between the two ranks (flow_network.h) and goes on at once; a
// receive waits until its message has arrived. Sums and copies take no time. Pure.
//
// A job cuts the vector into partitions, and executes the schedule on each of them (comm-lib/executor/executor.h).
// With Partitions, run_schedule() does the same: a rank begins partitions in their order, within a limit of bytes in
// flight, and messages of earlier partitions leave first.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/topology/network.h"
#include "netsim/channel_loads.h"
#include "netsim/flow_network.h"

namespace gleaner::netsim {

// Is called from time to time with the part of the messages that have arrived, 0 to 1.
using Progress = std::function<void(double)>;

struct StepTime {
  // From the time at which the last message of all earlier steps arrived to the time at which the last message of this
  // step did; 0 if that was earlier. These add up to RunResult::seconds.
  double seconds = 0;
  WorstLink worst_link;
};

struct RunResult {
  double seconds = 0;
  std::vector<StepTime> steps;
  uint64_t events = 0;  // changes of rates
};

// How a job cuts the vector.
struct Partitions {
  std::vector<double> bytes;   // of each partition, in their order
  double in_flight_bytes = 0;  // limit of the partitions that a rank has begun and not ended; one may always be begun
  double frame_bytes = 0;      // that a message has beside its part of the vector
  // Bytes of a partial sum for each byte of the vector (common/collective/cost.h); 2: of fp16 and bf16.
  uint32_t partial_width = 1;
};
// Returns the whole vector as one partition.
Partitions uncut(double bytes);

// `host_of[rank]` is the host with that rank; all differ. A chunk has exactly the `chunks`-th part of its
// partition.
// InvalidArgument: the map does not have schedule.ranks different hosts, the conditions are out of range, sends and
// receives don't match (collective::Messages), or ranks wait for each other for ever. Unavailable: failed links left no
// path.
absl::StatusOr<RunResult> run_schedule(const collective::Schedule& schedule, const topology::Network& network,
                                       const std::vector<uint32_t>& host_of, const Partitions& partitions,
                                       const Conditions& conditions, const Progress& progress = nullptr);

}  // namespace gleaner::netsim
