// What happened to a tensor or a partition in a member of a job, and when: the unit of a trace (docs/trace.md).
#pragma once

#include <cstdint>
#include <vector>

namespace gleaner::trace {

// Numbers travel (common/proto/coordinator.proto): only ever added.
enum class Kind : uint8_t {
  // At a rank. A tensor's push_pull:
  kRequested = 1,  // the program asked for it
  kReady = 2,      // its partitions may leave: local ranks are summed
  kDone = 3,       // the program may have it
  // A partition of it; peer: the owner:
  kPushed = 4,    // handed to the connection
  kDeferred = 5,  // the owner had no room: it will be pushed again
  kResult = 6,    // the sum is here, whole
  // At a summer; peer: the worker:
  kContributed = 7,  // a worker's part is here, whole, and counts
  kSumBegun = 8,     // all parts are here; no peer
  kSumEnded = 9,     // no peer
  kAnswered = 10,    // the sum was handed to the connection
};
inline constexpr uint8_t kLastKind = 10;

// `partition` is an index within the tensor, as in frames; 0 where the event is a whole tensor's.
struct Event {
  int64_t nanoseconds = 0;  // of the recording process's monotonic clock: comparable within a machine only
  uint64_t step = 0;        // of the tensor
  uint32_t tensor = 0;      // index in the plan
  uint32_t partition = 0;
  uint32_t bytes = 0;
  uint16_t peer = 0;  // member
  Kind kind = Kind::kRequested;

  friend bool operator==(const Event&, const Event&) = default;
};
static_assert(sizeof(Event) == 32, "two to a cache line");

// What one process recorded, in the order in which it did: nearly, but not quite, that of time.
struct Recording {
  std::vector<Event> events;
  uint64_t dropped = 0;  // events after the last of these that found no room
};

}  // namespace gleaner::trace
