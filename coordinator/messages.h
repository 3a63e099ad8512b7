// Actions of a coordinator's core, which its driver carries out: messages to members, and lines for the log.
//
// coordinator.proto documents the messages. A stream ends after Rejected, Failed, Finished and Goodbye.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/plan.h"
#include "coordinator/roster.h"

namespace gleaner::coordinator {

struct Welcome {
  uint32_t member = 0;
  uint32_t summers = 0;  // k as far as it is known at this time; the count in the plan is authoritative
  std::string session;
  uint64_t term = 0;
};
// Asks a member for the plan that it follows.
struct Recall {};
struct Heartbeat {};
struct Prepare {
  std::shared_ptr<const plan::Plan> plan;
};
struct Commit {
  uint32_t epoch = 0;
};
// A rank has left cleanly, so no further sum can be made.
struct Ending {};
// The member is refused, or removed from the job. The stream ends with this status.
struct Rejected {
  absl::Status why;
};
// The round of an elastic job has ended: the member leaves it and joins again.
struct Regroup {
  absl::Status why;
};
// How many waiting workers the next round of an elastic job has room for.
struct Newcomers {
  uint32_t workers = 0;
};
// Asks a rank how many push_pulls of this tensor it has begun, because some rank waits for a result of the tensor.
struct Inquire {
  std::string tensor;
};
struct Failed {
  absl::Status status;
};
struct Finished {};
struct Goodbye {};
using Message = std::variant<Welcome, Recall, Heartbeat, Prepare, Commit, Ending, Rejected, Failed, Finished, Goodbye,
                             Regroup, Newcomers, Inquire>;

struct Send {
  StreamId stream = 0;
  Message message;
};

// The driver carries them out in order.
struct Actions {
  std::vector<Send> sends;
  std::vector<std::string> notes;     // lines for the log, at level info
  std::vector<std::string> warnings;  // lines for the log, at level warning
};

// Adds a message to the member in this seat, if the member is present.
inline void send(const Roster& roster, uint32_t seat, Message message, Actions& actions) {
  if (roster[seat].state == Seat::State::kPresent) actions.sends.push_back({roster[seat].stream, std::move(message)});
}

// Adds a message to every present member.
inline void send_to_all(const Roster& roster, const Message& message, Actions& actions) {
  for (uint32_t seat = 0; seat < roster.size(); ++seat) send(roster, seat, message, actions);
}

// Adds a message to every present member that `plan` includes.
inline void send_to_members_of(const plan::Plan& plan, const Roster& roster, const Message& message, Actions& actions) {
  for (uint32_t seat = 0; seat < roster.size(); ++seat) {
    if (roster.is_part_of(plan, seat)) send(roster, seat, message, actions);
  }
}

}  // namespace gleaner::coordinator
