// Tracing traces one job for an observer: it passes the observer's orders on to members, and their recordings back
// (docs/protocol.md#traces).
//
// A job has one observer at a time. The observer fetches recordings member by member, so the coordinator holds the
// events of at most one member. From the beginning of a recording until the observer's stream closes, Tracing holds
// back members that want to leave cleanly, for up to 1.7 s. In this time the observer can still fetch their recordings,
// and those of the summers, which end when the last worker has left. Pure; belongs to a Job, which sends the messages
// in `sends`.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/control/trace_order.h"
#include "common/proto/coordinator.pb.h"
#include "coordinator/core/rounds.h"

namespace gleaner::coordinator {

class Tracing {
 public:
  using Sends = std::vector<std::pair<StreamId, v1::CoordinatorMessage>>;

  // `rounds` must outlive this object.
  explicit Tracing(const Rounds* rounds) : rounds_(*rounds) {}

  // Admits an observer. FailedPrecondition: the job has an observer already, or has ended.
  absl::Status enter(StreamId observer);
  std::optional<StreamId> observer() const { return observer_; }
  // Carries out an order of the observer. InvalidArgument: an unknown order, or a seat that does not exist.
  absl::Status ask(const v1::Observe& observe, Sends& sends);
  void on_report(uint64_t steps, Sends& sends);
  void on_traced(StreamId member, const v1::Traced& piece, Sends& sends) const;
  // Returns whether the stream that has closed is that of a member whose Leave was held back. The Leave then counts.
  bool on_closed(StreamId stream, Sends& sends);
  // Begins the recording that the observer has asked for, once the job has begun.
  void begin_if_asked(Sends& sends);

  // Returns whether a member's Leave has to wait. Tracing then keeps the member until release() returns it.
  bool hold_back(StreamId member, absl::Duration now, Sends& sends);
  // Returns the members that need not wait any longer, and forgets them.
  std::vector<StreamId> release(absl::Duration now, Sends& sends);

 private:
  enum class Phase { kNone, kAsked, kRecording, kStopped };

  void tell_members(control::TraceOrder order, Sends& sends) const;
  void tell(StreamId member, control::TraceOrder order, Sends& sends) const;
  void tell_observer(v1::Observed observed, Sends& sends) const;
  void begin(Sends& sends);
  void stop(Sends& sends);
  void announce_end(absl::Duration now, Sends& sends);

  const Core& core() const { return rounds_.core(); }

  const Rounds& rounds_;
  std::optional<StreamId> observer_;
  Phase phase_ = Phase::kNone;
  uint64_t recording_ = 0;  // number of the current recording
  std::vector<StreamId> leaving_;
  absl::Duration held_since_;
  bool announced_ = false;  // the observer was told that the job is ending
};

}  // namespace gleaner::coordinator
