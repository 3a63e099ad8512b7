#include "coordinator/core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/plan/model.h"

namespace gleaner::coordinator {

Core::Core(const Options& options, absl::Duration now, Origin origin)
    : options_(options),
      roster_(options_),
      declarations_(&roster_),
      efficiency_(roster_.ranks()),
      deadlocks_(&options_, &roster_, &declarations_, &efficiency_),
      planning_(&options_, &roster_, origin.epoch),
      reattachment_(&options_, &roster_),
      admission_(&options_, std::move(origin), &roster_, &planning_, &reattachment_),
      outcome_(options_.exit_timeout, &roster_),
      liveness_(&options_, &roster_, now),
      start_timeout_(&options_, &roster_, admission_.may_resume(), now),
      slow_summers_(&roster_) {}

// Returns the seat of a member that has sent a message; none if Core ignores the message.
std::optional<uint32_t> Core::seat_of_sender(StreamId stream, absl::Duration now) {
  const std::optional<uint32_t> seat = roster_.seat_of(stream);
  if (!seat.has_value() || outcome_.has_ended() || roster_[*seat].state != Seat::State::kPresent) return std::nullopt;
  roster_[*seat].last_heard = now;
  return seat;
}

std::optional<uint32_t> Core::rank_of_sender(StreamId stream, absl::Duration now) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  return seat.has_value() && !roster_.is_summer(*seat) ? seat : std::nullopt;
}

void Core::fail(const Failure& failure, Actions& actions) {
  announce_failure(outcome_.fail(failure, liveness_.last_tick()), actions);
}

void Core::fail_if(const std::optional<Failure>& failure, Actions& actions) {
  if (failure.has_value()) fail(*failure, actions);
}

void Core::lose(uint32_t seat, absl::string_view why, Actions& actions) {
  if (!has_begun() && GLN_MUTATION("a worker that is lost before the job begins is not missed")) return;
  const std::string steps = roster_.is_summer(seat) ? "" : efficiency_.describe_steps(seat);
  fail({absl::UnavailableError(absl::StrCat(roster_.located(seat), " is lost: ", why, steps)), seat, true}, actions);
}

void Core::announce_failure(bool has_ended, Actions& actions) {
  if (has_ended) send_to_all(roster_, Failed{*outcome_.status()}, actions);
}

void Core::stop(const absl::Status& why, Actions& actions) { fail({why, std::nullopt}, actions); }

Phase Core::phase() const {
  if (outcome_.has_ended()) return Phase::kEnded;
  if (reattachment_.is_under_way()) return Phase::kReattaching;
  return planning_.has_plan() ? Phase::kRunning : Phase::kGathering;
}

uint32_t Core::proposed_epoch() const { return planning_.is_proposed() ? planning_.agreement().proposed()->epoch : 0; }

void Core::on_heartbeat(StreamId stream, absl::Duration now) { seat_of_sender(stream, now); }

void Core::propose_next(absl::Duration now, Actions& actions) {
  if (reattachment_.is_under_way() || outcome_.has_ended()) return;
  const absl::Status status = planning_.propose_next(is_ending(), now, actions);
  if (!status.ok()) fail({status, std::nullopt}, actions);
}

void Core::on_acknowledged(StreamId stream, uint32_t epoch, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return;
  if (!planning_.agreement().is_proposed(epoch)) {
    if (epoch <= highest_epoch()) {  // a duplicate, or for a withdrawn plan, possibly of an earlier coordinator
      GLN_RARE("coordinator: an acknowledgement comes too late");
      return;
    }
    return fail({absl::InternalError(absl::StrCat(roster_.located(*seat), " acknowledged the plan of epoch ", epoch,
                                                  ", which was never proposed")),
                 *seat},
                actions);
  }
  if (roster_[*seat].acknowledged == epoch) return;
  roster_[*seat].acknowledged = epoch;
  commit_if_acknowledged(now, actions);
}

void Core::commit_if_acknowledged(absl::Duration now, Actions& actions) {
  if (outcome_.has_ended() || !planning_.commit_if_acknowledged(now, actions)) return;
  efficiency_.on_plan(plan());
  slow_summers_.on_plan(plan(), now);
  propose_next(now, actions);
}

void Core::on_refused(StreamId stream, uint32_t epoch, const absl::Status& why, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return;
  // The refused plan is withdrawn already: another member refused it first, or it was replaced. The next plan is
  // proposed to this member, too.
  if (!reattachment_.is_under_way() && planning_.agreement().is_withdrawn(epoch)) return;
  const std::string reason = absl::StrCat("it can't follow the plan of epoch ", epoch, ": ", why.message());
  if (roster_.is_summer(*seat)) return remove_summer(*seat, reason, now, actions);
  if (planning_.agreement().is_proposed(epoch) && planning_.agreement().reason() == PlanReason::kOptional) {
    return planning_.back_off(absl::StrCat(roster_.located(*seat), ": ", reason), now, actions);
  }
  fail({{why.ok() ? absl::StatusCode::kUnknown : why.code(),
         absl::StrCat(roster_.located(*seat), " can't follow the plan of epoch ", epoch, ": ", why.message())},
        *seat},
       actions);
}

void Core::on_declared(StreamId stream, const std::vector<plan::Tensor>& tensors,
                       const std::vector<plan::Operation>& operations, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return;
  if (roster_.is_summer(*seat)) {
    return fail(
        {absl::InternalError(absl::StrCat(roster_.located(*seat), " declared tensors; only workers do")), *seat},
        actions);
  }
  if (reattachment_.is_under_way()) return reattachment_.keep({*seat, tensors, operations});
  declare(*seat, tensors, operations, now, actions);
  propose_next(now, actions);
  check_declarations(now, actions);
}

void Core::declare(uint32_t seat, const std::vector<plan::Tensor>& tensors,
                   const std::vector<plan::Operation>& operations, absl::Duration now, Actions& actions) {
  absl::Status status = declarations_.declare(seat, tensors, now);
  if (status.ok()) status = declarations_.operate(seat, operations);
  if (!status.ok()) return fail({status, seat}, actions);
  planning_.add_tensors(declarations_.take_agreed());
}

void Core::on_report(StreamId stream, const Report& report, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> rank = rank_of_sender(stream, now);
  if (!rank.has_value()) return;
  efficiency_.on_report(*rank, report, now);
  if (is_ending() || reattachment_.is_under_way() || *rank % options_.local_ranks != 0) return;
  slow_summers_.on_report(*rank / options_.local_ranks, report, now, actions);
}

void Core::on_waiting(StreamId stream, std::optional<OldestPushPull> waiting, absl::Duration now) {
  if (const auto rank = rank_of_sender(stream, now); rank.has_value()) deadlocks_.on_waiting(*rank, std::move(waiting));
}

void Core::on_begun(StreamId stream, const std::string& tensor, uint64_t push_pulls, absl::Duration now) {
  if (const auto rank = rank_of_sender(stream, now); rank.has_value()) deadlocks_.on_begun(*rank, tensor, push_pulls);
}

void Core::on_fault(StreamId stream, uint32_t member, uint32_t epoch, const absl::Status& why, absl::Duration now,
                    Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return;
  const std::string report = absl::StrCat(roster_.name(*seat), " reports: ", why.message());
  if (reattachment_.is_under_way() && member >= options_.workers && member < plan::kMaxMembers) {
    GLN_RARE("coordinator: a summer is out of reach while the job is being taken up");
    reattachment_.keep_unreachable(member, {epoch, report});
    return;
  }
  if (member >= options_.workers + roster_.summers()) {
    return fail({absl::UnavailableError(absl::StrCat(roster_.located(*seat), " can't go on: ", why.message())), *seat},
                actions);
  }
  const uint32_t accused = roster_.seat_of_member(member);
  if (roster_.is_summer(accused)) return remove_unreachable_summer(accused, epoch, report, now, actions);
  // A worker that left cleanly has closed its connections, so a rank that still needs it can't reach it.
  if (roster_[accused].state == Seat::State::kLeft) {
    return fail({absl::UnavailableError(deadlocks_.describe_early_leave(accused, *seat)), accused, true}, actions);
  }
  lose(accused, report, actions);
}

void Core::on_left(StreamId stream, const absl::Status& status, uint32_t epoch, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return;
  if (roster_.is_summer(*seat)) return on_summer_left(*seat, status, now, actions);
  if (status.ok() && reattachment_.is_under_way()) {
    GLN_RARE("coordinator: a worker leaves while the job is being taken up");
    roster_[*seat].leaving = true;
    roster_[*seat].leaves_at = epoch;
    return;
  }
  if (status.ok() && epoch < plan().epoch && !GLN_MUTATION("a worker leaves though it is behind")) {
    GLN_RARE("coordinator: a worker leaves before it has heard of a plan");
    return;
  }
  if (status.ok() && has_begun()) return leave_cleanly(*seat, now, actions);
  roster_.vacate(*seat, Seat::State::kLeft, now);
  actions.sends.push_back({stream, Goodbye{}});
  on_left_in_error(*seat, status, actions);
}

void Core::on_summer_left(uint32_t seat, const absl::Status& status, absl::Duration now, Actions& actions) {
  if (!status.ok()) return remove_summer(seat, absl::StrCat("it ends: ", status.message()), now, actions);
  if (!has_begun()) {
    planning_.release_summer(seat, now, actions);
    return begin_if_all_joined(now, actions);
  }
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " wants to leave"));
  planning_.on_summer_leaves(seat, now);
  if (is_ending()) {
    planning_.release_summer(seat, now, actions);
  } else {
    release_unless_in_plan(seat, now, actions);
  }
  propose_next(now, actions);
}

// Fails the job because a rank has left with an error or before the job had begun.
void Core::on_left_in_error(uint32_t seat, const absl::Status& status, Actions& actions) {
  if (const auto early = outcome_.local_rank_that_left(seat); absl::IsUnavailable(status) && early.has_value()) {
    const uint64_t steps = efficiency_.latest(*early).steps;
    return fail({absl::UnavailableError(absl::StrCat(
                     roster_.name(*early), " finished", steps == 0 ? "" : absl::StrCat(" after ", steps, " steps"),
                     "; ", roster_.name(seat), " was at step ", efficiency_.latest(seat).steps + 1,
                     ", and left with an error: ", status.message(), "; every rank must take part in every step")),
                 *early, true},
                actions);
  }
  const std::string what =
      status.ok() ? " left before the job had begun"
                  : absl::StrCat(" left with an error: ", status.message(), efficiency_.describe_steps(seat));
  fail({absl::UnavailableError(absl::StrCat(roster_.located(seat), what)), seat, true}, actions);
}

void Core::leave_cleanly(uint32_t seat, absl::Duration now, Actions& actions) {
  outcome_.on_left_cleanly(seat);
  send(roster_, seat, Goodbye{}, actions);
  roster_.vacate(seat, Seat::State::kLeft, now);
  actions.notes.push_back(absl::StrCat(roster_.name(seat), " left"));
  after_leaving(now, actions);
}

void Core::after_leaving(absl::Duration now, Actions& actions) {
  if (!is_ending()) {
    first_leave_at_ = now;
    send_to_all(roster_, Ending{}, actions);
  }
  planning_.withdraw_unless_needed();
  check_declarations(now, actions);
  commit_if_acknowledged(now, actions);
  if (roster_.left_ranks() == roster_.ranks() && outcome_.succeed()) send_to_all(roster_, Finished{}, actions);
  if (!outcome_.has_ended()) reattachment_.ask_for_plan(actions);
  finish_reattachment_if_complete(now, actions);
}

void Core::remove_summer(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions) {
  const Seat& summer = roster_[seat];
  if (!summer.takes_part()) return;
  actions.warnings.push_back(
      absl::StrCat(roster_.located(seat), " is lost: ", why,
                   has_begun() ? "; other members take over its partitions" : "; the job begins without it"));
  if (summer.state == Seat::State::kPresent) {
    actions.sends.push_back({summer.stream, Rejected{absl::AbortedError(absl::StrCat("left out of the job: ", why))}});
  }
  planning_.on_summer_lost(seat, now);
  if (!has_begun()) {
    if (GLN_MUTATION("the job does not begin without a lost summer")) return;
    return begin_if_all_joined(now, actions);
  }
  if (reattachment_.is_under_way()) return finish_reattachment_if_complete(now, actions);
  propose_next(now, actions);
  commit_if_acknowledged(now, actions);
}

// Removes a summer that a rank can't reach under the plan of `epoch`, unless it joined after that plan.
void Core::remove_unreachable_summer(uint32_t seat, uint32_t epoch, absl::string_view why, absl::Duration now,
                                     Actions& actions) {
  const uint32_t since = roster_[seat].since;
  if (epoch > 0 && (since == 0 || since > epoch)) {
    GLN_RARE("coordinator: a rank can't reach a summer that another one has replaced");
    return;
  }
  remove_summer(seat, why, now, actions);
}

// Releases a summer that wants to leave at once if the plan in force does not include it.
void Core::release_unless_in_plan(uint32_t seat, absl::Duration now, Actions& actions) {
  if (reattachment_.is_under_way() || roster_.is_part_of(plan(), seat)) return;
  planning_.release_summer(seat, now, actions);
}

absl::Status Core::release_summer(uint32_t index, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = roster_.seat_of_index(Role::kSummer, index);
  if (!seat.has_value() || !roster_[*seat].takes_part() || !has_begun()) {
    return absl::NotFoundError(absl::StrCat("no summer ", index, " takes part"));
  }
  planning_.on_summer_leaves(*seat, now);
  release_unless_in_plan(*seat, now, actions);
  propose_next(now, actions);
  return absl::OkStatus();
}

absl::Status Core::set_bandwidth(Role role, uint32_t index, double bits_per_second, absl::Duration now,
                                 Actions& actions) {
  const std::optional<uint32_t> seat = roster_.seat_of_index(role, index);
  if (!seat.has_value()) return absl::NotFoundError("no such member");
  if (!(bits_per_second >= plan::kMinBitsPerSecond && bits_per_second <= plan::kMaxBitsPerSecond)) {
    return absl::InvalidArgumentError(absl::StrCat("a bandwidth of ", bits_per_second, " bit/s is out of range"));
  }
  roster_[*seat].bits_per_second = bits_per_second;
  propose_next(now, actions);
  return absl::OkStatus();
}

void Core::on_disconnected(StreamId stream, const absl::Status& why, Actions& actions) {
  const std::optional<uint32_t> seat = roster_.seat_of(stream);
  if (!seat.has_value() || outcome_.has_ended() || roster_[*seat].state != Seat::State::kPresent) return;
  const absl::Duration now = liveness_.last_tick();
  if (reattachment_.is_under_way() && !roster_.is_summer(*seat) && roster_[*seat].leaving) {
    return leave_cleanly(*seat, now, actions);
  }
  if (absl::IsUnavailable(why) && mark_away_if_it_may_return(*seat, why.message(), now, actions)) return;
  if (roster_.is_summer(*seat)) return remove_summer(*seat, why.message(), now, actions);
  lose(*seat, why.message(), actions);
}

void Core::on_tick(absl::Duration now, Actions& actions) {
  if (outcome_.has_ended()) return;
  liveness_.on_tick(now);
  announce_failure(outcome_.on_tick(now), actions);
  if (outcome_.has_ended()) return;
  check_start(now, actions);
  check_proposal(now, actions);
  check_liveness(now, actions);
  check_declarations(now, actions);
  check_waiting_ranks(now, actions);
  give_up_overdue_summers(now, actions);
  if (!is_ending() && !reattachment_.is_under_way()) slow_summers_.on_tick(now, actions);
  propose_next(now, actions);  // an optional plan may be due
  if (!outcome_.has_ended() && liveness_.take_heartbeat(now)) send_to_all(roster_, Heartbeat{}, actions);
}

void Core::check_start(absl::Duration now, Actions& actions) {
  if (planning_.has_plan() || planning_.is_proposed()) return;
  const bool reattaching = reattachment_.is_under_way();
  if (auto warning = start_timeout_.warning(reattaching, now)) actions.warnings.push_back(*std::move(warning));
  fail_if(start_timeout_.check(reattaching, reattachment_.asked(), now), actions);
}

void Core::check_proposal(absl::Duration now, Actions& actions) {
  if (!planning_.is_overdue(now)) return;
  const std::vector<uint32_t> silent = planning_.agreement().unacknowledged();
  if (silent.empty()) return planning_.withdraw();
  if (planning_.agreement().reason() == PlanReason::kOptional) {
    return planning_.back_off(absl::StrCat(roster_.names(silent), " did not acknowledge it within ",
                                           absl::FormatDuration(options_.change_timeout)),
                              now, actions);
  }
  if (roster_.is_summer(silent.front())) {
    return remove_summer(silent.front(), "it does not acknowledge a plan", now, actions);
  }
  fail(
      {absl::DeadlineExceededError(absl::StrCat(roster_.names(silent), " did not acknowledge the plan of epoch ",
                                                proposed_epoch(), " within ", absl::FormatDuration(options_.deadline))),
       silent.front(), true},
      actions);
}

void Core::check_liveness(absl::Duration now, Actions& actions) {
  const bool reattaching = reattachment_.is_under_way();
  for (uint32_t seat = 0; seat < roster_.size() && !outcome_.has_ended(); ++seat) {
    const std::optional<Liveness::Overdue> overdue = liveness_.check(seat, reattaching, now);
    if (!overdue.has_value()) continue;
    const StreamId stream = roster_[seat].stream;
    if (roster_.is_summer(seat) && !reattaching) {
      remove_summer(seat, overdue->why, now, actions);
    } else if (overdue->is_connected && mark_away_if_it_may_return(seat, overdue->why, now, actions)) {
      actions.sends.push_back({stream, Rejected{absl::UnavailableError(overdue->why)}});
    } else {
      lose(seat, overdue->why, actions);
    }
  }
}

void Core::check_declarations(absl::Duration now, Actions& actions) {
  if (!outcome_.has_ended()) fail_if(deadlocks_.check_declarations(now, actions), actions);
}

void Core::check_waiting_ranks(absl::Duration now, Actions& actions) {
  if (outcome_.has_ended() || reattachment_.is_under_way()) return;
  fail_if(is_ending() ? deadlocks_.check_leavers(*first_leave_at_, now) : deadlocks_.check_stalls(now, actions),
          actions);
}

// Goes on without the summers that did not return after a change of coordinators.
void Core::give_up_overdue_summers(absl::Duration now, Actions& actions) {
  if (outcome_.has_ended() || !reattachment_.are_summers_overdue(now)) return;
  for (const uint32_t seat : roster_.missing()) {
    GLN_RARE("coordinator: a summer does not come back after a restart");
    actions.warnings.push_back(absl::StrCat(roster_.located(seat), " did not come back; the job goes on without it"));
    planning_.on_summer_stayed_away(seat, now);
  }
  finish_reattachment_if_complete(now, actions);
}

Summary Core::summary() const {
  Summary summary = summarize(plan(), efficiency_, liveness_.last_tick());
  summary.workers = options_.workers;
  summary.summers = planning_.has_plan() ? plan().summers() : roster_.summers();
  summary.local_ranks = options_.local_ranks;
  summary.succeeded = outcome_.has_ended() && outcome_.status()->ok();
  if (outcome_.has_ended()) summary.error = std::string(outcome_.status()->message());
  return summary;
}

}  // namespace gleaner::coordinator
