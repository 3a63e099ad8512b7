// The events of a trace by what they are about, in the one time of fit_clocks(): what steps, paths and the merged trace
// are read from. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "cli/timeline/clocks.h"
#include "cli/timeline/job_trace.h"

namespace gleaner::cli {

// Nanoseconds; zero is the reference's first frame.
using Time = int64_t;
inline constexpr Time kNever = std::numeric_limits<Time>::min();

// One worker's part in the sum of a partition.
struct PartTimes {
  Time pushed = kNever;  // the last time, where the owner had put it off
  Time contributed = kNever;
  Time answered = kNever;
  Time result = kNever;
};
struct PartitionTimes {
  Time sum_begun = kNever;
  Time sum_ended = kNever;
  std::vector<PartTimes> workers;
};
// One rank's push_pull.
struct RequestTimes {
  Time requested = kNever;
  Time ready = kNever;  // local rank 0
  Time done = kNever;
};

// A tensor's push_pull number `step`: the same on all ranks.
struct Call {
  uint32_t tensor = 0;
  uint64_t step = 0;
  friend auto operator<=>(const Call&, const Call&) = default;
};
struct CallTimes {
  std::vector<RequestTimes> ranks;         // by index in JobTrace::ranks
  std::vector<PartitionTimes> partitions;  // by index within the tensor
};

class Timeline {
 public:
  // `trace` outlives it. Events of tensors, partitions and peers that the plan does not have are left out.
  explicit Timeline(const JobTrace& trace);

  const JobTrace& trace() const { return trace_; }
  const plan::Plan& plan() const { return trace_.plan; }
  const std::map<Call, CallTimes>& calls() const { return calls_; }
  const CallTimes& call(const Call& call) const { return calls_.at(call); }
  uint32_t owner(const Call& call, uint32_t partition) const {
    return plan().partitions[plan().first_partition[call.tensor] + partition].owner;
  }

  // By member. None: nothing of it can be set beside what others recorded.
  const std::vector<std::optional<ClockFit>>& clocks() const { return clocks_; }
  // Index in JobTrace::ranks of a worker's local rank 0.
  uint32_t leader(uint32_t worker) const { return worker * plan().local_ranks; }
  // Until when every rank kept what it recorded.
  Time whole_until() const { return whole_until_; }
  // Which rank's buffer was full at whole_until(); empty: none.
  const std::string& full() const { return full_; }

 private:
  void note(uint32_t rank, const trace::Event& event, Time time);
  void note_part(uint32_t member, const trace::Event& event, Time time, PartitionTimes& partition);
  void note_extent(const RankTrace& rank, const ClockFit& clock);

  const JobTrace& trace_;
  std::vector<std::optional<ClockFit>> clocks_;
  std::map<Call, CallTimes> calls_;
  Time whole_until_ = std::numeric_limits<Time>::max();
  std::string full_;
};

// The frames of a trace that went between two members and whose both ends are known.
std::vector<Crossing> crossings(const JobTrace& trace);

}  // namespace gleaner::cli
