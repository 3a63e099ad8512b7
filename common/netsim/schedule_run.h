// run_schedule() simulates a schedule (common/collective/schedule.h) on a topology. Each rank executes its operations
// in order: a send hands its message to the connection between the two ranks (flow_network.h) and goes on at once; a
// receive waits until its message has arrived. The processors of the hosts take their overhead for each message that a
// rank sends or receives, and for the call (processors.h). Sums and copies take no time. Pure.
//
// A job cuts the vector into partitions, and executes the schedule on each of them (comm-lib/executor/executor.h).
// With Partitions, run_schedule() does the same:
// - A rank begins partitions in their order, within its limit of bytes in flight.
// - Beyond the limit, it begins a partition of which a message arrives, or for which a peer asks. At every tick, a rank
//   asks each peer for whose message a partition has waited since the tick before. A question takes no time.
// - Messages of earlier partitions leave first, except for those that have entered the window of the peer.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/netsim/channel_loads.h"
#include "common/netsim/flow_network.h"
#include "common/topology/network.h"

namespace gleaner::netsim {

// Is called from time to time with the part of the messages that have arrived, 0 to 1.
using Progress = std::function<void(double)>;

struct StepTime {
  // From the time at which the last message of all earlier steps arrived to the time at which the last message of this
  // step did; 0 if that was earlier. The last step also has the time in which processors hand results back. These add
  // up to RunResult::seconds.
  double seconds = 0;
  WorstLink worst_link;
};

struct RunResult {
  double seconds = 0;
  std::vector<StepTime> steps;
  uint64_t events = 0;  // changes of rates
};

// How much a rank has under way. Partial sums count, whatever their width.
struct RankLimits {
  // Limits the partitions that the rank has begun and not ended; one may always be begun
  // (plan::schedule_window_bytes()).
  double in_flight_bytes = 0;
  // Limits the messages to one peer that are about to leave; one may always be (plan::peer_window_bytes()).
  double window_bytes = 0;
};

// How a job cuts the vector.
struct Partitions {
  std::vector<double> bytes;       // of each partition, in their order
  std::vector<RankLimits> limits;  // by rank; not needed for a single partition
  double frame_bytes = 0;          // that a message has beside its part of the vector
  // Bytes of a partial sum for each byte of the vector (common/collective/cost.h); 2: of fp16 and bf16.
  uint32_t partial_width = 1;
  // Chunks have whole elements of so many bytes, and a message without elements is not sent, as in the runtime
  // (collective::chunk_begin()). 0: each chunk has exactly the `chunks`-th part of its partition.
  double element_bytes = 0;
};
// Returns the whole vector as one partition.
Partitions uncut(double bytes);

// `host_of[rank]` is the host with that rank; all differ.
// InvalidArgument: the map does not have schedule.ranks different hosts, several partitions have no limits by rank, the
// conditions are out of range, sends and receives don't match (collective::Messages), or ranks wait for each other for
// ever. Unavailable: failed links left no path.
absl::StatusOr<RunResult> run_schedule(const collective::Schedule& schedule, const topology::Network& network,
                                       const std::vector<uint32_t>& host_of, const Partitions& partitions,
                                       const Conditions& conditions, const Progress& progress = nullptr);

}  // namespace gleaner::netsim
