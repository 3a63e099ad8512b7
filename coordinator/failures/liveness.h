// Liveness decides when heartbeats to members are due, and which members count as lost because they are silent, or
// because they do not return after their stream broke. A member whose stream broke and that may return is *away*. Pure;
// belongs to a Core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

inline constexpr absl::Duration kHeartbeatEvery = absl::Seconds(1);

class Liveness {
 public:
  // A member that counts as lost.
  struct Overdue {
    bool is_connected = false;  // true: the member is silent on its stream; false: it did not return
    std::string why;
  };

  // The pointers must outlive this object.
  Liveness(const Options* options, Roster* roster, absl::Duration now)
      : options_(*options), roster_(*roster), last_tick_(now), last_heartbeat_(now) {}

  // Returns the time of the last tick, for events without a time.
  absl::Duration last_tick() const { return last_tick_; }
  // Excludes a pause of the coordinator itself since the last tick from the silence of all members: messages that they
  // sent meanwhile are still unread.
  void on_tick(absl::Duration now);
  // Returns whether the member in this seat is overdue: silent for longer than the deadline (a summer:
  // summer_timeout), or away for longer than return_timeout (a summer: summer_timeout). During re-attachment members
  // may stay away until start_timeout.
  std::optional<Overdue> check(uint32_t seat, bool reattaching, absl::Duration now) const;
  // Marks a member as away, and returns true. Returns false, and changes nothing, if the member can't return. It can
  // return during re-attachment, and if there is a return_timeout and members look for a coordinator that they have
  // lost (`may_members_return`, see Admission).
  bool mark_away_if_it_may_return(uint32_t seat, absl::string_view why, bool reattaching, bool may_members_return,
                                  absl::Duration now, Actions& actions);
  // Returns whether heartbeats are due, and starts the next interval.
  bool take_heartbeat(absl::Duration now);

 private:
  const Options& options_;
  Roster& roster_;
  absl::Duration last_tick_;
  absl::Duration last_heartbeat_;
};

}  // namespace gleaner::coordinator
