#include "coordinator/core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "coordinator/fault_report.h"

namespace gleaner::coordinator {

Core::Core(const Options& options, absl::Duration now, Origin origin)
    : options_(options),
      roster_(options_),
      declarations_(&roster_),
      steps_(&options_, &roster_, &declarations_),
      planning_(&options_, &roster_, origin.epoch),
      reattachment_(&options_, &roster_),
      admission_(&options_, std::move(origin), &roster_, &planning_, &reattachment_),
      outcome_(options_.exit_timeout, &roster_),
      liveness_(&options_, &roster_, now),
      start_timeout_(&options_, &roster_, admission_.may_resume(), now) {}

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

// A lost rank fails the job. Does nothing if a lost summer takes no part.
void Core::lose(const Loss& loss, absl::Duration now, Actions& actions) {
  if (roster_.is_summer(loss.seat)) return remove_summer(loss, now, actions);
  if (!has_begun() && GLN_MUTATION("a worker that is lost before the job begins is not missed")) return;
  const std::string steps = steps_.efficiency().describe_steps(loss.seat);
  fail({absl::UnavailableError(absl::StrCat(roster_.located(loss.seat), " is lost: ", loss.why, steps)), loss.seat,
        true},
       actions);
}

void Core::remove_summer(const Loss& loss, absl::Duration now, Actions& actions) {
  if (!roster_[loss.seat].takes_part()) return;
  planning_.on_summer_lost(loss.seat, loss.why, has_begun(), now, actions);
  if (!has_begun()) {
    if (GLN_MUTATION("the job does not begin without a lost summer")) return;
    return begin_if_all_joined(now, actions);
  }
  if (reattachment_.is_under_way()) return finish_reattachment_if_complete(now, actions);
  propose_next(now, actions);
  commit_if_acknowledged(now, actions);
}

void Core::carry_out(const Finding& finding, absl::Duration now, Actions& actions) {
  if (const auto* failure = std::get_if<Failure>(&finding)) fail(*failure, actions);
  if (const auto* loss = std::get_if<Loss>(&finding)) lose(*loss, now, actions);
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
  const absl::StatusOr<bool> is_new = planning_.on_acknowledged(*seat, epoch);
  if (!is_new.ok()) return fail({is_new.status(), *seat}, actions);
  if (*is_new) commit_if_acknowledged(now, actions);
}

void Core::commit_if_acknowledged(absl::Duration now, Actions& actions) {
  if (outcome_.has_ended() || !planning_.commit_if_acknowledged(now, actions)) return;
  steps_.on_plan(plan(), now);
  propose_next(now, actions);
}

void Core::on_refused(StreamId stream, uint32_t epoch, const absl::Status& why, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return;
  carry_out(planning_.on_refused(*seat, epoch, why, reattachment_.is_under_way(), now, actions), now, actions);
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
  steps_.on_report(*rank, report, are_all_in_steps(), now, actions);
}

void Core::on_waiting(StreamId stream, std::optional<Waiting> waiting, absl::Duration now) {
  if (const auto rank = rank_of_sender(stream, now); rank.has_value()) {
    steps_.deadlocks().on_waiting(*rank, std::move(waiting));
  }
}

void Core::on_begun(StreamId stream, const std::string& tensor, uint64_t push_pulls, absl::Duration now) {
  if (const auto rank = rank_of_sender(stream, now); rank.has_value()) {
    steps_.deadlocks().on_begun(*rank, tensor, push_pulls);
  }
}

void Core::on_fault(StreamId stream, uint32_t member, uint32_t epoch, const absl::Status& why, absl::Duration now,
                    Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return;
  const FaultReport report{*seat, member, epoch, why};
  if (reattachment_.is_under_way() && member >= options_.workers && member < plan::kMaxMembers) {
    GLN_RARE("coordinator: a summer is out of reach while the job is being taken up");
    return reattachment_.keep_unreachable(member, {epoch, describe(report, roster_)});
  }
  carry_out(judge(report, roster_, steps_.deadlocks()), now, actions);
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
  if (!status.ok()) return lose({seat, absl::StrCat("it ends: ", status.message())}, now, actions);
  if (!has_begun()) {
    planning_.release_summer(seat, now, actions);
    return begin_if_all_joined(now, actions);
  }
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " wants to leave"));
  if (is_ending()) {
    planning_.release_summer(seat, now, actions);
  } else {
    planning_.on_summer_leaves(seat, reattachment_.is_under_way(), now, actions);
  }
  propose_next(now, actions);
}

// Fails the job because a rank has left with an error or before the job had begun.
void Core::on_left_in_error(uint32_t seat, const absl::Status& status, Actions& actions) {
  if (const auto early = outcome_.local_rank_that_left(seat); absl::IsUnavailable(status) && early.has_value()) {
    const uint64_t steps = steps_.efficiency().latest(*early).steps;
    return fail({absl::UnavailableError(absl::StrCat(
                     roster_.name(*early), " finished", steps == 0 ? "" : absl::StrCat(" after ", steps, " steps"),
                     "; ", roster_.name(seat), " was at step ", steps_.efficiency().latest(seat).steps + 1,
                     ", and left with an error: ", status.message(), "; every rank must take part in every step")),
                 *early, true},
                actions);
  }
  const std::string what =
      status.ok() ? " left before the job had begun"
                  : absl::StrCat(" left with an error: ", status.message(), steps_.efficiency().describe_steps(seat));
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

absl::Status Core::release_summer(uint32_t index, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = roster_.seat_of_index(Role::kSummer, index);
  if (!seat.has_value() || !roster_[*seat].takes_part() || !has_begun()) {
    return absl::NotFoundError(absl::StrCat("no summer ", index, " takes part"));
  }
  planning_.on_summer_leaves(*seat, reattachment_.is_under_way(), now, actions);
  propose_next(now, actions);
  return absl::OkStatus();
}

absl::Status Core::set_bandwidth(Role role, uint32_t index, double bits_per_second, absl::Duration now,
                                 Actions& actions) {
  GLN_RETURN_IF_ERROR(roster_.set_bandwidth(role, index, bits_per_second));
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
  lose({*seat, std::string(why.message())}, now, actions);
}

void Core::on_tick(absl::Duration now, Actions& actions) {
  if (outcome_.has_ended()) return;
  liveness_.on_tick(now);
  announce_failure(outcome_.on_tick(now), actions);
  if (outcome_.has_ended()) return;
  check_start(now, actions);
  carry_out(planning_.check_overdue(now, actions), now, actions);
  check_liveness(now, actions);
  check_declarations(now, actions);
  check_waiting_ranks(now, actions);
  give_up_overdue_summers(now, actions);
  if (are_all_in_steps()) steps_.retry_slow_summers(now, actions);
  propose_next(now, actions);  // an optional plan may be due
  if (!outcome_.has_ended() && liveness_.take_heartbeat(now)) send_to_all(roster_, Heartbeat{}, actions);
}

void Core::check_start(absl::Duration now, Actions& actions) {
  if (planning_.has_plan() || planning_.is_proposed()) return;
  fail_if(start_timeout_.on_tick(reattachment_.is_under_way(), reattachment_.asked(), now, actions), actions);
}

void Core::check_liveness(absl::Duration now, Actions& actions) {
  const bool reattaching = reattachment_.is_under_way();
  for (uint32_t seat = 0; seat < roster_.size() && !outcome_.has_ended(); ++seat) {
    const std::optional<Liveness::Overdue> overdue = liveness_.check(seat, reattaching, now);
    if (!overdue.has_value()) continue;
    const StreamId stream = roster_[seat].stream;
    const bool may_return = overdue->is_connected && (reattaching || !roster_.is_summer(seat));
    if (may_return && mark_away_if_it_may_return(seat, overdue->why, now, actions)) {
      actions.sends.push_back({stream, Rejected{absl::UnavailableError(overdue->why)}});
    } else {
      lose({seat, overdue->why}, now, actions);
    }
  }
}

void Core::check_declarations(absl::Duration now, Actions& actions) {
  if (!outcome_.has_ended()) fail_if(steps_.deadlocks().check_declarations(now, actions), actions);
}

void Core::check_waiting_ranks(absl::Duration now, Actions& actions) {
  if (outcome_.has_ended() || reattachment_.is_under_way()) return;
  fail_if(steps_.check_waiting_ranks(first_leave_at_, now, actions), actions);
}

// Goes on without the summers that did not return after a change of coordinators.
void Core::give_up_overdue_summers(absl::Duration now, Actions& actions) {
  if (outcome_.has_ended() || !reattachment_.are_summers_overdue(now)) return;
  for (const uint32_t seat : roster_.missing()) planning_.on_summer_stayed_away(seat, now, actions);
  finish_reattachment_if_complete(now, actions);
}

Summary Core::summary() const {
  Summary summary = summarize(plan(), steps_.efficiency(), liveness_.last_tick());
  summary.workers = options_.workers;
  summary.summers = planning_.has_plan() ? plan().summers() : roster_.summers();
  summary.local_ranks = options_.local_ranks;
  summary.succeeded = outcome_.has_ended() && outcome_.status()->ok();
  if (outcome_.has_ended()) summary.error = std::string(outcome_.status()->message());
  return summary;
}

}  // namespace gleaner::coordinator
