// Event is something that happened to a tensor or a partition at a member, with its time. A trace consists of events
// (docs/trace.md).
#pragma once

#include <cstdint>
#include <vector>

namespace gleaner::trace {

// The numbers are part of messages (common/proto/coordinator.proto): only add new ones.
enum class Kind : uint8_t {
  // At a rank, about a request (a push_pull of a tensor):
  kRequested = 1,  // the program made the request
  kReady = 2,      // the local ranks have summed the tensor; its partitions may be pushed
  kDone = 3,       // the program can have the result
  // At a rank, about a partition; peer is the owner:
  kPushed = 4,    // the contribution was passed to the connection
  kDeferred = 5,  // the owner had no memory; the contribution will be pushed again
  kResult = 6,    // the whole result has arrived
  // At a summer, about a partition; peer is the worker:
  kContributed = 7,  // a worker's whole contribution has arrived, and it counts
  kSumBegun = 8,     // all contributions have arrived; no peer
  kSumEnded = 9,     // no peer
  kAnswered = 10,    // the result was passed to the connection
  // At a rank, about a partition that a schedule sums; the first and the last have no peer:
  kBegun = 11,         // the partition is in its work buffer, and the program begins
  kSliceSent = 12,     // a slice left its queue for the connection; peer is the receiver
  kSliceArrived = 13,  // a whole slice has arrived; so here and below, peer is the sender
  kSliceAdded = 14,    // the slice was added to the work buffer
  kSliceCopied = 15,   // the slice replaced a part of the work buffer
  kEnded = 16,         // the program has ended, and the sum is in the output
  // At a rank, about the GPU's work for a request, as the I/O thread sees it. All but the first one are about
  // consecutive partitions, and have the first of these and the bytes of all:
  kProduced = 17,      // the GPU has made the tensor
  kCopyOutBegun = 18,  // a copy to the host was passed to the GPU, and need not wait for the tensor
  kCopyOutEnded = 19,
  kCopyInBegun = 20,  // a copy of the result to the GPU was passed to the GPU
  kCopyInEnded = 21,
  kReduceBegun = 22,  // a copy to other GPUs of the machine, or a sum of theirs, was passed to the GPU
  kReduceEnded = 23,
  kBroadcastBegun = 24,  // a copy of the result from other GPUs of the machine was passed to the GPU
  kBroadcastEnded = 25,
};
inline constexpr uint8_t kLastKind = 25;
// Returns whether a schedule sums the partition that the event is about.
constexpr bool is_of_schedule(Kind kind) { return kind >= Kind::kBegun && kind <= Kind::kEnded; }
// Returns whether the event is about the work of a GPU.
constexpr bool is_of_gpu(Kind kind) { return kind >= Kind::kProduced && kind <= Kind::kBroadcastEnded; }

// `partition` is an index within the tensor, as in frames; 0 if the event is about a whole tensor.
//
// `step` of a request (kRequested, kReady, kDone) and of a GPU's work for it is the number of the tensor's earlier
// push_pulls. All other events have the step of their frames, which counts only the push_pulls that the same strategy
// has summed before: owners, or the schedule.
struct Event {
  int64_t nanoseconds = 0;  // on the machine's monotonic clock: comparable only with events of the same machine
  uint64_t step = 0;        // of the tensor
  uint32_t tensor = 0;      // index in the plan
  uint32_t partition = 0;
  uint32_t bytes = 0;
  uint16_t peer = 0;  // member index
  Kind kind = Kind::kRequested;
  uint8_t schedule = 0;  // is_of_schedule(): index in Plan::schedules
  // If the event is about a slice: the step of the schedule in which it is sent, and its first chunk
  // (common/collective/schedule.h).
  uint32_t schedule_step = 0;
  uint32_t chunk = 0;

  friend bool operator==(const Event&, const Event&) = default;
};
static_assert(sizeof(Event) == 40, "kMostEvents of them have the size that recorder.h states");

// The events that one process recorded, in the order of recording, which is nearly the order of time.
struct Recording {
  std::vector<Event> events;
  uint64_t dropped = 0;  // number of later events for which there was no room
};

}  // namespace gleaner::trace
