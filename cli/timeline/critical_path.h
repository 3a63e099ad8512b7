// Finds the critical path of a step: the chain of events that the end of the step's last request depended on. Pure.
//
// The path consists of segments, each in a stage. Every moment of the step is in exactly one segment, so the times of
// all stages add up to the length of the step. The walk begins at the request that ended last and goes back in time:
//   kLocal    from the arrival of the worker's last result to the end of the request
//   kWire     the result, from the owner to the worker
//   kSum      from the arrival of the last contribution at the owner until the owner sends the result
//   kWire     that contribution, from its worker to the owner
//   kQueue    that contribution, from ready until it is sent
// or, if a schedule sums the tensor, from the worker's last sum back along the operations of the schedule:
//   kSum      a slice is added or copied, or the sum is written into the output
//   kWire     the slice, if the worker waited for it; the walk continues with its sender
//   kQueue    the slice, from the receive before it in the sender's program until it is sent
//   kQueue    the partition, from ready until its program begins
// and then in both cases:
//   kWait     from the time when the median worker was ready until that worker was ready: it is a straggler
//   kLocal    in the median worker, from the request of its last local rank until ready
//   kCompute  back to the time when that rank last had no request in flight, or to the beginning of the step
// In the first case of kCompute, the walk continues with the request that had ended at that time.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/timeline/steps.h"
#include "cli/timeline/timeline.h"

namespace gleaner::cli {

enum class Stage {
  kCompute,  // the program has not made the request yet
  kLocal,    // inside the worker: mailbox, sums over local ranks, handing back results
  kQueue,    // ready, and waiting for its turn on the connection
  kWire,     // passed to a connection, and not yet completely arrived
  kSum,      // at the owner, from the last contribution to the result; at a worker, a slice is added or copied
  kWait,     // waiting for a straggler
  kUnknown,  // the events of some member are missing
};
inline constexpr size_t kStages = 7;
absl::string_view name_of(Stage stage);

struct Segment {
  Stage stage = Stage::kUnknown;
  Time begin = 0;
  Time end = 0;
  uint32_t member = 0;                    // where the time was spent; kWire: the sender; kWait: the straggler
  std::optional<uint32_t> to;             // kWire: the receiver
  std::optional<TensorStep> tensor_step;  // the tensor and its step
  std::optional<uint32_t> partition;      // index within the tensor
  std::optional<uint32_t> schedule_step;  // of the slice; none: the segment is about no slice
};

struct StepPath {
  std::vector<Segment> segments;      // in order of time and without gaps, from the step's beginning to its end
  std::array<Time, kStages> spent{};  // by stage
  struct Slowest {
    uint32_t worker = 0;
    Time waited = 0;
  };
  std::optional<Slowest> slowest;  // the worker with the longest kWait in total; none: there was no kWait

  Time& operator[](Stage stage) { return spent[static_cast<size_t>(stage)]; }
  Time operator[](Stage stage) const { return spent[static_cast<size_t>(stage)]; }
};

// Returns the critical path of a complete step.
StepPath walk(const Timeline& timeline, const Step& step);

}  // namespace gleaner::cli
