#include "coordinator/failures/liveness.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"

namespace gleaner::coordinator {
void Liveness::on_tick(absl::Duration now) {
  const absl::Duration pause = now - last_tick_;
  last_tick_ = now;
  if (pause <= std::min(options_.deadline, options_.summer_timeout) / 2) return;
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
    roster_[seat].last_heard += pause;
    roster_[seat].away_since += pause;
  }
}

std::optional<Liveness::Overdue> Liveness::check(uint32_t seat, bool reattaching, absl::Duration now) const {
  const Seat& member = roster_[seat];
  const bool is_summer = roster_.is_summer(seat);
  const absl::Duration silence = is_summer ? options_.summer_timeout : options_.deadline;
  const absl::Duration absence = is_summer ? options_.summer_timeout : options_.return_timeout;
  const bool suspected = is_summer && !reattaching && GLN_INJECT("coordinator: a summer is taken for lost");
  if (member.state == Seat::State::kPresent && (suspected || now - member.last_heard > silence)) {
    return Overdue{true, absl::StrCat("it has sent no message for ", absl::FormatDuration(silence))};
  }
  if (member.state == Seat::State::kAway && !reattaching && now - member.away_since > absence) {
    return Overdue{
        false, absl::StrCat("its connection broke, and it did not come back within ", absl::FormatDuration(absence))};
  }
  return std::nullopt;
}

bool Liveness::mark_away_if_it_may_return(uint32_t seat, absl::string_view why, bool reattaching,
                                          bool may_members_return, absl::Duration now, Actions& actions) {
  const bool may_return = options_.return_timeout > absl::ZeroDuration() && may_members_return;
  if (!reattaching && !may_return) return false;
  roster_.vacate(seat, Seat::State::kAway, now);
  actions.warnings.push_back(absl::StrCat(roster_.located(seat), ": ", why, "; waiting for it to come back"));
  return true;
}

bool Liveness::take_heartbeat(absl::Duration now) {
  if (now - last_heartbeat_ < kHeartbeatEvery) return false;
  last_heartbeat_ = now;
  return true;
}

}  // namespace gleaner::coordinator
