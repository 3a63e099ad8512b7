// A trace of one job, as its coordinator sees it: passes an observer's orders on to members, and their recordings back.
//
// A job has one observer at a time. It fetches member by member, so that the coordinator holds the events of one member
// at most. Members that want to leave well while there is something to fetch are held back for a moment, since summers
// leave with the last worker. Pure; belongs to a Job, which sends what Tracing puts into `sends`.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/proto/coordinator.pb.h"
#include "operator/coordinator/rounds.h"

namespace gleaner::coordinator {

class Tracing {
 public:
  using Sends = std::vector<std::pair<StreamId, v1::CoordinatorMessage>>;

  // Reads `rounds`, which outlives it.
  explicit Tracing(const Rounds* rounds) : rounds_(*rounds) {}

  // An observer wants in. FailedPrecondition: there is one already, or the job has ended.
  absl::Status enter(StreamId observer);
  std::optional<StreamId> observer() const { return observer_; }
  // What the observer asks for. InvalidArgument: nothing that there is.
  absl::Status ask(const v1::Observe& what, Sends& sends);
  void on_report(uint64_t steps, Sends& sends);
  void on_traced(StreamId member, const v1::Traced& piece, Sends& sends) const;
  // A stream is gone, perhaps the observer's. Whether it is a member's whose good-bye was held back: that counts.
  bool on_closed(StreamId stream, Sends& sends);
  // Once the job has begun.
  void begin_if_asked(Sends& sends);

  // Whether a member's good-bye has to wait; it is kept here then.
  bool hold_back(StreamId member, absl::Duration now, Sends& sends);
  // Those that have to wait no longer.
  std::vector<StreamId> release(absl::Duration now, Sends& sends);

 private:
  enum class Phase { kNone, kAsked, kRecording, kStopped };

  void tell_members(v1::TraceOrder order, Sends& sends) const;
  void tell(StreamId member, v1::TraceOrder order, Sends& sends) const;
  void tell_observer(v1::Observed what, Sends& sends) const;
  void begin(Sends& sends);
  void stop(Sends& sends);
  void announce_end(absl::Duration now, Sends& sends);

  const Core& core() const { return rounds_.core(); }

  const Rounds& rounds_;
  std::optional<StreamId> observer_;
  Phase phase_ = Phase::kNone;
  uint64_t recording_ = 0;  // number of the one that is going on
  std::vector<StreamId> leaving_;
  absl::Duration held_since_;
  bool announced_ = false;  // that the job is ending, to the observer
};

}  // namespace gleaner::coordinator
