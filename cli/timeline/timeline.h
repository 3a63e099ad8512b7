// Timeline has the events of a trace, grouped by tensor, step, partition and worker or slice, with all times on the
// common clock of fit_clocks(). Steps, critical paths and the merged trace are derived from it. Pure.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/timeline/clocks.h"
#include "cli/timeline/gpu_work.h"
#include "cli/timeline/job_trace.h"
#include "cli/timeline/push_pull_numbers.h"
#include "cli/timeline/time.h"

namespace gleaner::cli {

// The events of one worker's contribution to a partition, and of its result (trace::Kind).
struct ContributionTimes {
  Time pushed = kNever;       // the last push, if the owner deferred earlier ones
  Time contributed = kNever;  // the first time, if the event repeats; so are the next two
  Time answered = kNever;
  Time result = kNever;
};
// The events of a partition that a schedule sums, at one worker.
struct RunTimes {
  Time begun = kNever;
  Time ended = kNever;
};
// Identifies a slice of a partition: its workers, the step of the schedule in which it is sent, and its first chunk.
struct SliceKey {
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t schedule_step = 0;
  uint32_t chunk = 0;
  friend auto operator<=>(const SliceKey&, const SliceKey&) = default;
};
// The events of a slice at both workers.
struct SliceTimes {
  Time sent = kNever;
  Time arrived = kNever;
  Time received = kNever;  // added to the receiver's work buffer, or copied into it
  bool is_added = false;
  uint32_t bytes = 0;
};
struct PartitionTimes {
  // If owners sum the partition:
  Time sum_begun = kNever;
  Time sum_ended = kNever;
  std::vector<ContributionTimes> workers;
  // If a schedule sums the partition (receives.h):
  std::vector<RunTimes> runs;  // by worker
  std::map<SliceKey, SliceTimes> slices;
};
// The events of one rank's request.
struct RequestTimes {
  Time requested = kNever;
  Time ready = kNever;  // of the first piece; only local rank 0 has it
  Time done = kNever;   // a GPU may still copy the result then
  GpuWork gpu;          // nothing if the tensor is in the host's memory

  // Returns when the program had made the request and the tensor, which a GPU makes later; kNever: unknown.
  Time asked() const { return requested == kNever ? kNever : std::max(requested, gpu.produced()); }
  // Returns when the result was in the program's memory; kNever: unknown.
  Time ended() const { return done == kNever ? kNever : std::max(done, gpu.result_there()); }
};

// The requests of all ranks for one step of a tensor. All events of this push_pull belong to it, whichever strategy
// sums it (push_pull_numbers.h).
struct TensorStep {
  uint32_t tensor = 0;
  uint64_t step = 0;  // number of the push_pull
  friend auto operator<=>(const TensorStep&, const TensorStep&) = default;
};
struct TensorStepTimes {
  std::vector<RequestTimes> ranks;         // by index in JobTrace::ranks
  std::vector<PartitionTimes> partitions;  // by index within the tensor
  std::optional<uint32_t> schedule;        // index in Plan::schedules; none: owners sum the push_pull
};

class Timeline {
 public:
  // `trace` must outlive the timeline. Ignores events of tensors, partitions, schedules and peers that are not in the
  // plan, and the recordings of members whose clock has no fit.
  explicit Timeline(const JobTrace& trace);

  const JobTrace& trace() const { return trace_; }
  const plan::Plan& plan() const { return trace_.plan; }
  const std::map<TensorStep, TensorStepTimes>& tensor_steps() const { return tensor_steps_; }
  const TensorStepTimes& times_of(const TensorStep& tensor_step) const { return tensor_steps_.at(tensor_step); }
  uint32_t owner(const TensorStep& tensor_step, uint32_t partition) const {
    return plan().partitions[plan().first_partition[tensor_step.tensor] + partition].owner;
  }

  // Returns the clocks by member. The times of a member without a fit can't be compared with others.
  const std::vector<std::optional<ClockFit>>& clocks() const { return clocks_; }
  // Returns the index in JobTrace::ranks of a worker's local rank 0.
  uint32_t leader(uint32_t worker) const { return worker * plan().local_ranks; }
  // Returns the time after which some rank dropped events because its buffer was full.
  Time whole_until() const { return whole_until_; }
  // Returns the name of that rank; empty: no rank dropped events.
  const std::string& full() const { return full_; }

 private:
  Time first_event() const;
  void note(uint32_t rank, const trace::Event& event, Time time);
  TensorStepTimes& entry_of(const trace::Event& event);
  void note_contribution(uint32_t member, const trace::Event& event, Time time, PartitionTimes& partition);
  static void note_slice(uint32_t worker, const trace::Event& event, Time time, PartitionTimes& partition);
  void note_extent(const RankTrace& rank, Time end);

  const JobTrace& trace_;
  const PushPullNumbers numbers_;
  std::vector<std::optional<ClockFit>> clocks_;
  std::map<TensorStep, TensorStepTimes> tensor_steps_;
  Time whole_until_ = std::numeric_limits<Time>::max();
  std::string full_;
};

// Returns the frames between two different members of which the trace has both the departure and the arrival.
std::vector<Crossing> crossings(const JobTrace& trace);

}  // namespace gleaner::cli
