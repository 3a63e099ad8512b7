// Actions of a coordinator's core, which its driver carries out: messages to members, lines for the log, and requests
// for models.
//
// common/control has the messages. A stream ends after Rejected, Failed, Finished and Goodbye.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/control/coordinator_messages.h"
#include "common/plan/plan.h"
#include "coordinator/roster/roster.h"

namespace gleaner::strategy {
struct ModelRequest;
}

namespace gleaner::coordinator {

using control::Commit;
using control::CountPushPulls;
using control::Ending;
using control::Failed;
using control::Finished;
using control::Goodbye;
using control::Heartbeat;
using control::Inquire;
using control::Newcomers;
using control::Prepare;
using control::Recall;
using control::Regroup;
using control::Welcome;
using control::Withdraw;

// The member is refused, or removed from the job. The stream ends with this status.
struct Rejected {
  absl::Status why;
};
// Core fills in the first four fields of a Welcome.
using Message = std::variant<Welcome, Recall, Heartbeat, Prepare, Commit, Ending, Rejected, Failed, Finished, Goodbye,
                             Regroup, Newcomers, Inquire, Withdraw, CountPushPulls>;

struct Send {
  StreamId stream = 0;
  Message message;
};

using ModelRequest = std::shared_ptr<const strategy::ModelRequest>;

// The driver carries them out in order.
struct Actions {
  std::vector<Send> sends;
  std::vector<std::string> notes;     // lines for the log, at level info
  std::vector<std::string> warnings;  // lines for the log, at level warning
  // To be carried out by another thread, which takes up to half a second (Modelling::carry_out()); its answer is an
  // event (Core::on_modelled()). Null: there is none.
  ModelRequest model;
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
