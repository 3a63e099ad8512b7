#include "coordinator/core/time_limits.h"

#include <cstdint>
#include <optional>

namespace gleaner::coordinator {

void TimeLimits::on_tick(absl::Duration now, Actions& actions) {
  if (parts_.outcome.has_ended()) return;
  parts_.liveness.on_tick(now);
  lifecycle_.announce_failure(parts_.outcome.on_tick(now), actions);
  if (parts_.outcome.has_ended()) return;
  check_start(now, actions);
  lifecycle_.carry_out(parts_.planning.check_overdue(now, actions), now, actions);
  check_liveness(now, actions);
  lifecycle_.check_declarations(now, actions);
  check_waiting_ranks(now, actions);
  give_up_overdue_summers(now, actions);
  parts_.departures.on_tick(actions);
  if (parts_.are_all_in_steps()) parts_.steps.retry_slow_summers(now, actions);
  lifecycle_.propose_next(now, actions);  // an optional plan may be due
  const bool has_ended = parts_.outcome.has_ended();
  if (!has_ended && parts_.liveness.take_heartbeat(now)) send_to_all(parts_.roster, Heartbeat{}, actions);
}

void TimeLimits::check_start(absl::Duration now, Actions& actions) {
  if (parts_.planning.has_plan() || parts_.planning.is_proposed()) return;
  const Reattachment& reattachment = parts_.reattachment;
  lifecycle_.fail_if(parts_.start_timeout.on_tick(reattachment.is_under_way(), reattachment.asked(), now, actions),
                     actions);
}

// A summer that is silent is lost, except during re-attachment. Any other silent member may return on a new stream.
void TimeLimits::check_liveness(absl::Duration now, Actions& actions) {
  const bool reattaching = parts_.reattachment.is_under_way();
  for (uint32_t seat = 0; seat < parts_.roster.size() && !parts_.outcome.has_ended(); ++seat) {
    const std::optional<Liveness::Overdue> overdue = parts_.liveness.check(seat, reattaching, now);
    if (!overdue.has_value()) continue;
    const StreamId stream = parts_.roster[seat].stream;
    const bool may_return = overdue->is_connected && (reattaching || !parts_.roster.is_summer(seat));
    if (may_return && lifecycle_.wait_for_return(seat, overdue->why, now, actions)) {
      actions.sends.push_back({stream, Rejected{absl::UnavailableError(overdue->why)}});
    } else {
      lifecycle_.lose({seat, overdue->why}, now, actions);
    }
  }
}

void TimeLimits::check_waiting_ranks(absl::Duration now, Actions& actions) {
  if (parts_.outcome.has_ended() || parts_.reattachment.is_under_way()) return;
  lifecycle_.fail_if(parts_.steps.check_waiting_ranks(parts_.departures.first_leave_at(), now, actions), actions);
}

// Goes on without the summers that did not return after a change of coordinators.
void TimeLimits::give_up_overdue_summers(absl::Duration now, Actions& actions) {
  if (parts_.outcome.has_ended() || !parts_.reattachment.are_summers_overdue(now)) return;
  for (const uint32_t seat : parts_.roster.missing()) parts_.planning.on_summer_stayed_away(seat, now, actions);
  lifecycle_.finish_reattachment_if_complete(now, actions);
}

}  // namespace gleaner::coordinator
