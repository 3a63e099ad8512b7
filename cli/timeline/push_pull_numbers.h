// PushPullNumbers converts the steps of frames to numbers of push_pulls. Pure.
//
// The *number* of a push_pull is the count of earlier push_pulls of the same tensor, by any strategy. The step of a
// frame counts only the earlier push_pulls that the same strategy has summed: owners, or one schedule. The two differ
// once a plan has changed the tensor's strategy (docs/protocol.md#changes-of-strategy):
//
//   number      97      98      99      100     101
//   strategy    owners  owners  ring    ring    owners
//   step        97      98      0       1       99
//
// Workers' recordings tell the numbers: a worker has one push_pull of a tensor in flight, so its events about
// partitions belong to its last Kind::kReady.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "cli/timeline/job_trace.h"

namespace gleaner::cli {

class PushPullNumbers {
 public:
  explicit PushPullNumbers(const JobTrace& trace);

  // Returns the number of the push_pull that an event is about. A step for which no worker has recorded its kReady gets
  // the number that follows from the nearest step of the same strategy, or else its own.
  uint64_t find(const trace::Event& event) const;

 private:
  // A tensor, and 0 for owners or 1 + the index of the schedule.
  using Strategy = std::pair<uint32_t, uint32_t>;
  static Strategy strategy_of(const trace::Event& event) {
    return {event.tensor, trace::is_of_schedule(event.kind) ? 1u + event.schedule : 0u};
  }
  void read(const trace::Recording& recording);

  std::map<Strategy, std::map<uint64_t, uint64_t>> numbers_;  // by step
};

}  // namespace gleaner::cli
