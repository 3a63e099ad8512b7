// Ending decides when a server ends, and with which status. A server ends
// - when its job has ended or goes on without it: end();
// - when it was asked to leave (leave()) and the job has not let it go within kLeaveTimeout;
// - when it is *abandoned*: the coordinator is lost, and no worker has been connected for the job's deadline. Within
//   that time workers may connect again.
//
// Pure; belongs to one thread.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gleaner::service {

class Ending {
 public:
  static constexpr absl::Duration kLeaveTimeout = absl::Milliseconds(1800);

  // Sets the job's deadline. Without one, the server is never abandoned.
  void set_deadline(absl::Duration deadline) { deadline_ = deadline; }

  // Ends the server with `status`. The first call counts.
  void end(const absl::Status& status);
  // Records that the server was asked to leave. Returns whether this is the first time.
  bool leave(absl::Duration now);
  // Records whether the job goes on without a coordinator.
  void set_coordinator_lost(bool lost) { coordinator_lost_ = lost; }
  // Ends the server if its time is over. To be called several times a second. `has_workers`: a worker is connected.
  void tick(bool has_workers, absl::Duration now);

  bool has_ended() const { return ended_.has_value(); }
  // Returns the status with which the server ends. Needs has_ended(). OK if it was asked to leave and the job counted
  // it as lost: it has left cleanly.
  absl::Status status() const;

 private:
  absl::Duration deadline_ = absl::InfiniteDuration();
  std::optional<absl::Status> ended_;
  std::optional<absl::Duration> leave_by_;  // set by leave()
  bool coordinator_lost_ = false;
  absl::Duration last_connected_;  // last time at which a worker or the coordinator was connected
};

}  // namespace gleaner::service
