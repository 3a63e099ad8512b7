// Finds the critical path of a step: the chain of events that the end of the step's last request depended on. Pure.
//
// The path consists of segments, each in a stage. Every moment of the step is in exactly one segment, so the times of
// all stages add up to the length of the step. The walk begins at the request that ended last and goes back in time:
//   kLocal    from the arrival of the worker's last result to the end of the request, but for the time of
//   kCopyIn   the copies of results to that rank's GPU, and
//   kBroadcast  those from the GPUs of its machine
//   kWire     the result, from the owner to the worker
//   kSum      from the arrival of the last contribution at the owner until the owner sends the result
//   kWire     that contribution, from its worker to the owner
//   kQueue    that contribution, from ready until it is sent, but for the time of
//   kCopyOut  its copy from the GPU, and those of the tensor's parts before it
// or, if a schedule sums the tensor, from the worker's last sum back along the operations of the schedule:
//   kSum      a slice is added or copied, or the sum is written into the output
//   kWire     the slice, if the worker waited for it; the walk continues with its sender
//   kQueue    the slice, from the receive before it in the sender's program until it is sent
//   kQueue    the partition, from ready until its program begins
// and then in both cases:
//   kWait     from the time when the median worker was ready until that worker was ready: it is a straggler
//   kLocal    in the median worker, from the request of its last local rank until ready, but for the time of
//   kReduce   the copies and sums between the GPUs of the machine,
//   kCopyOut  the copy from the GPU, and
//   kQueue    the time before, in which the GPU copied more urgent tensors
//   kCompute  back to the time when that rank last had no request in flight, or to the beginning of the step
// A request counts from when its tensor was there, if a GPU made it, until its result was in the memory of the GPU.
// In the first case of kCompute, the walk continues with the request that had ended at that time.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/timeline/gpu_work.h"
#include "cli/timeline/steps.h"
#include "cli/timeline/timeline.h"

namespace gleaner::cli {

enum class Stage {
  kCompute,    // the program has not made the request yet, or its GPU the tensor
  kLocal,      // inside the worker: mailbox, sums over local ranks, handing back results
  kQueue,      // ready, and waiting for its turn on the connection
  kWire,       // passed to a connection, and not yet completely arrived
  kSum,        // at the owner, from the last contribution to the result; at a worker, a slice is added or copied
  kWait,       // waiting for a straggler
  kReduce,     // between the GPUs of a machine: copies of the local ranks' inputs, and their sums
  kCopyOut,    // from a GPU to the host
  kCopyIn,     // from the host to a GPU
  kBroadcast,  // between the GPUs of a machine: copies of the result
  kUnknown,    // the events of some member are missing
};
inline constexpr size_t kStages = 11;
// Returns whether only members with GPUs spend time in the stage.
constexpr bool is_of_gpu(Stage stage) { return stage >= Stage::kReduce && stage <= Stage::kBroadcast; }
absl::string_view name_of(Stage stage);
Stage stage_of(const GpuSpan& span);

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
