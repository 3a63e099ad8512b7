// CPU summers that come, go and are lost while a job goes on, and the plans that follow from it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/model.h"
#include "operator/coordinator/core.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kFirstPause = absl::Seconds(5);
constexpr absl::Duration kLongestPause = absl::Minutes(5);

}  // namespace

// --- who is in

// Every rank is, for as long as it is here; a summer whose very own place the plan has.
bool Core::is_part_of(const plan::Plan& plan, uint32_t seat) const {
  if (!roster_.is_summer(seat)) return true;
  const uint32_t member = roster_.member_of(seat);
  const Seat& summer = roster_[seat];
  if (member >= plan.members.size() || !plan.members[member].is_here() || summer.state == Seat::State::kVacant) {
    return false;
  }
  const uint32_t since = plan.members[member].since;
  return summer.since > 0 ? since == summer.since : since > summer.came_after;
}

void Core::tell_part_of(const plan::Plan& plan, const Message& message, Actions& actions) {
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
    if (is_part_of(plan, seat)) tell(seat, message, actions);
  }
}

// A summer of the plan in force.
bool Core::is_anybody_lost() const {
  for (uint32_t member = committed_->workers; member < committed_->members.size(); ++member) {
    if (committed_->members[member].is_here() && !is_part_of(*committed_, roster_.seat_of_member(member))) return true;
  }
  return false;
}

// The plan's members but for those that are lost.
std::vector<plan::Member> Core::members_left() const {
  std::vector<plan::Member> members = committed_->members;
  for (uint32_t member = committed_->workers; member < members.size(); ++member) {
    if (!is_part_of(*committed_, roster_.seat_of_member(member))) members[member] = {};
  }
  return members;
}

// Those who should be in a plan of `epoch`, with what they have now.
std::vector<plan::Member> Core::members_wanted(uint32_t epoch) const {
  std::vector<plan::Member> members(options_.workers + summers());
  const double stand_in = stand_in_bandwidth();
  for (uint32_t member = 0; member < members.size(); ++member) {
    const bool is_worker = member < options_.workers;
    const Seat& seat = roster_[roster_.seat_of_member(member)];
    if (!is_worker && (!seat.takes_part() || seat.leaving)) continue;
    const bool in_plan = is_worker && committed_->epoch > 0;
    const uint32_t since = in_plan ? committed_->members[member].since : seat.since;
    const std::optional<double> bandwidth = known_bandwidth_of(member);
    members[member] = {bandwidth.value_or(stand_in), seat.identity.address, since > 0 ? since : epoch,
                       seat.identity.endpoints, !bandwidth.has_value()};
  }
  while (members.size() > std::max<size_t>(options_.workers, committed_->members.size()) && !members.back().is_here()) {
    members.pop_back();
  }
  return members;
}

// --- coming

absl::Status Core::let_in_late(StreamId stream, const Identity& identity, absl::Duration now, Actions& actions) {
  if (recovering_) return absl::UnavailableError("this job is being taken up by a new coordinator; try again");
  if (ending_) return absl::FailedPreconditionError("this job is about to end");
  if (uint64_t{options_.workers} + summers() >= plan::kMaxMembers) {
    return absl::ResourceExhaustedError(absl::StrCat("this job has ", plan::kMaxMembers, " members already"));
  }
  const uint32_t seat = roster_.place_for(identity);
  if (roster_[seat].state == Seat::State::kAway) {
    GLN_RARE("coordinator: a summer is started anew before it was missed");
    remove_summer(seat, "it was started anew", now, actions);
  }
  if (roster_[seat].state == Seat::State::kPresent) {
    return absl::UnavailableError(
        absl::StrCat(roster_.located(seat), " has joined already, and is not known to have ended; try again"));
  }
  GLN_RETURN_IF_ERROR(roster_.take(seat, stream, identity, now));
  roster_[seat].came_after = highest_epoch_;
  welcome(seat, session_, actions);
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " has come"));
  next_change_ = now;
  propose_next(now, actions);
  return absl::OkStatus();
}

absl::Status Core::set_bandwidth(Role role, uint32_t index, double bits_per_second, absl::Duration now,
                                 Actions& actions) {
  const std::optional<uint32_t> seat = roster_.seat_of_index(role, index);
  if (!seat.has_value()) return absl::NotFoundError("no such member");
  if (!(bits_per_second >= plan::kMinBitsPerSecond && bits_per_second <= plan::kMaxBitsPerSecond)) {
    return absl::InvalidArgumentError(absl::StrCat(bits_per_second, " bit/s is nobody's bandwidth"));
  }
  roster_[*seat].bits_per_second = bits_per_second;
  propose_next(now, actions);
  return absl::OkStatus();
}

// --- going

void Core::remove_summer(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions) {
  const Seat& summer = roster_[seat];
  if (!summer.takes_part()) return;
  actions.warnings.push_back(
      absl::StrCat(roster_.located(seat), " is lost: ", why,
                   has_begun() ? "; others take over what it summed" : "; the job begins without it"));
  if (summer.state == Seat::State::kPresent) {
    actions.sends.push_back({summer.stream, Rejected{absl::AbortedError(absl::StrCat("left out of the job: ", why))}});
  }
  ++changes_.lost;
  const bool is_proposed = proposed_ != nullptr && is_part_of(*proposed_, seat);
  roster_.vacate(seat, Seat::State::kVacant, now);
  if (!lost_at_.has_value() && is_anybody_lost()) lost_at_ = now;
  if (is_proposed) {
    GLN_RARE("coordinator: a summer is lost that a plan on its way counts on");
    withdraw_proposal();
  }
  if (!has_begun()) return begin_if_all_here(now, actions);
  if (recovering_) return go_on_if_all_back(now, actions);
  propose_next(now, actions);
  commit_if_acknowledged(now, actions);
}

absl::Status Core::release_summer(uint32_t index, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = roster_.seat_of_index(Role::kSummer, index);
  if (!seat.has_value() || !roster_[*seat].takes_part() || !has_begun()) {
    return absl::NotFoundError(absl::StrCat("no summer ", index, " takes part"));
  }
  roster_[*seat].leaving = true;
  next_change_ = now;
  if (!recovering_ && !is_part_of(*committed_, *seat)) {
    let_go(*seat, actions);
  } else {
    propose_next(now, actions);
  }
  return absl::OkStatus();
}

// Nobody needs this summer.
void Core::let_go(uint32_t seat, Actions& actions) {
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " leaves"));
  ++changes_.left;
  tell(seat, Goodbye{}, actions);
  roster_.vacate(seat, Seat::State::kVacant, last_tick_);
}

// --- plans

void Core::withdraw_proposal() {
  proposed_ = nullptr;
  proposed_tensors_ = 0;
}

void Core::give_up_change(absl::string_view why, absl::Duration now, Actions& actions) {
  change_pause_ = std::min(std::max(2 * change_pause_, kFirstPause), kLongestPause);
  next_change_ = now + change_pause_;
  ++changes_.given_up;
  actions.warnings.push_back(absl::StrCat("the plan of epoch ", proposed_->epoch,
                                          ", meant to make steps faster, is given up: ", why, "; again in ",
                                          absl::FormatDuration(change_pause_)));
  withdraw_proposal();
}

// The plan in force is another than `before`.
void Core::after_commit(const plan::Plan& before, absl::Duration now, Actions& actions) {
  for (uint32_t member = committed_->workers; member < committed_->members.size(); ++member) {
    const uint32_t seat = roster_.seat_of_member(member);
    if (!is_part_of(*committed_, seat)) continue;
    const bool is_new = roster_[seat].since == 0;
    roster_[seat].since = committed_->members[member].since;
    if (is_new && before.epoch > 0) ++changes_.came;
  }
  if (lost_at_.has_value() && !is_anybody_lost()) {
    changes_.recovery_seconds += absl::ToDoubleSeconds(now - *lost_at_);
    lost_at_.reset();
  }
  switch (proposed_why_) {
    case Why::kNeeded:
      break;
    case Why::kRecovery:
      ++changes_.recovered;
      uneven_ = true;
      break;
    case Why::kFaster:
      ++changes_.moved;
      uneven_ = false;
      change_pause_ = absl::ZeroDuration();
      break;
  }
  for (uint32_t seat = roster_.ranks(); seat < roster_.size(); ++seat) {
    if (roster_[seat].leaving && !is_part_of(*committed_, seat)) let_go(seat, actions);
  }
}

}  // namespace gleaner::coordinator
