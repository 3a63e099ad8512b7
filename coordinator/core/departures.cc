#include "coordinator/core/departures.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/text_table.h"
#include "coordinator/failures/fault_report.h"

namespace gleaner::coordinator {

bool Departures::must_stay(uint32_t epoch, const plan::Plan& in_force) const {
  if (epoch >= in_force.epoch || GLN_MUTATION("a worker leaves though it is behind")) return false;
  GLN_RARE("coordinator: a worker leaves before it has heard of a plan");
  return true;
}

void Departures::leave(uint32_t rank, absl::Duration now, Actions& actions) {
  send(roster_, rank, Goodbye{}, actions);
  roster_.vacate(rank, Seat::State::kLeft, now);
  actions.notes.push_back(absl::StrCat(roster_.name(rank), " left"));
  note_departure(rank);
  begin_ending(now, actions);
}

Failure Departures::leave_in_error(uint32_t rank, const absl::Status& status, absl::Duration now, Actions& actions) {
  send(roster_, rank, Goodbye{}, actions);
  roster_.vacate(rank, Seat::State::kLeft, now);
  if (const auto early = outcome_.local_rank_that_left(rank); absl::IsUnavailable(status) && early.has_value()) {
    const uint64_t steps = efficiency_.latest(*early).steps;
    return {absl::UnavailableError(absl::StrCat(
                roster_.name(*early), " finished", steps == 0 ? "" : absl::StrCat(" after ", counted(steps, "step")),
                "; ", roster_.name(rank), " was at step ", efficiency_.latest(rank).steps + 1,
                ", and left with an error: ", status.message(), "; every rank must take part in every step")),
            *early, true};
  }
  const std::string what =
      status.ok() ? " left before the job had begun"
                  : absl::StrCat(" left with an error: ", status.message(), efficiency_.describe_steps(rank));
  return {absl::Status(code_for_others(status), absl::StrCat(roster_.located(rank), what)), rank, true};
}

bool Departures::has_worker_left(uint32_t first) const {
  for (uint32_t rank = first; rank < first + local_ranks_; ++rank) {
    if (roster_[rank].state != Seat::State::kLeft) return false;
  }
  return true;
}

void Departures::end_worker(uint32_t first, absl::Duration now, Actions& actions) {
  for (uint32_t rank = first; rank < first + local_ranks_; ++rank) {
    send(roster_, rank, Goodbye{}, actions);
    roster_.vacate(rank, Seat::State::kLeft, now);
    note_departure(rank);
  }
  actions.notes.push_back(absl::StrCat("worker ", roster_.index_of(first), " has ended"));
  begin_ending(now, actions);
}

void Departures::begin_ending(absl::Duration now, Actions& actions) {
  if (is_ending()) return;
  first_leave_at_ = now;
  send_to_all(roster_, Ending{std::exchange(untold_, {})}, actions);
}

// Only the first local rank of a worker exchanges frames with other workers.
void Departures::note_departure(uint32_t rank) {
  if (rank % local_ranks_ == 0) untold_.push_back(roster_.member_of(rank));
}

void Departures::on_tick(Actions& actions) {
  if (untold_.empty()) return;
  const Ending message{std::exchange(untold_, {})};
  for (uint32_t rank = 0; rank < roster_.ranks(); ++rank) {
    if (roster_[rank].state == Seat::State::kPresent) send(roster_, rank, message, actions);
  }
}

}  // namespace gleaner::coordinator
