// Joining carries out a member's request to join the job, or to return to it.
//
// Admission (admission.h) decides on the request. Joining then has the other parts follow:
// - A new member gets a seat, and the plan that is proposed. With the last one the job begins.
// - A summer that joins the running job causes the next plan. If it takes the place of a summer that is away, that one
//   is lost first.
// - The first member that returns with a plan in force begins the re-attachment (reattachment.h), if this coordinator
//   does not know the job's plan yet.
// - A rank that comes without the state that it had is lost.
// A member that is not admitted is rejected with the reason. Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/core/lifecycle.h"
#include "coordinator/core/parts.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class Joining {
 public:
  // The pointers must outlive this object.
  Joining(Parts* parts, Lifecycle* lifecycle) : parts_(*parts), lifecycle_(*lifecycle) {}

  // See Core::on_joined().
  void on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume, absl::Duration now,
                 Actions& actions);

 private:
  absl::Status admit(StreamId stream, const Identity& identity, const std::string& session, absl::Duration now,
                     Actions& actions);
  absl::Status readmit(StreamId stream, const Identity& identity, const Resume& resume, absl::Duration now,
                       Actions& actions);
  void on_returned(uint32_t seat, absl::Duration now, Actions& actions);

  Parts& parts_;
  Lifecycle& lifecycle_;
};

}  // namespace gleaner::coordinator
