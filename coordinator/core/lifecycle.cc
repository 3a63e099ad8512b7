#include "coordinator/core/lifecycle.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "coordinator/failures/fault_report.h"

namespace gleaner::coordinator {

void Lifecycle::carry_out(const Finding& finding, absl::Duration now, Actions& actions) {
  if (const auto* failure = std::get_if<Failure>(&finding)) fail(*failure, actions);
  if (const auto* loss = std::get_if<Loss>(&finding)) lose(*loss, now, actions);
}

void Lifecycle::lose(const Loss& loss, absl::Duration now, Actions& actions) {
  if (parts_.roster.is_summer(loss.seat)) return remove_summer(loss, now, actions);
  if (!parts_.has_begun() && GLN_MUTATION("a worker that is lost before the job begins is not missed")) return;
  const std::string steps = parts_.steps.efficiency().describe_steps(loss.seat);
  fail({absl::UnavailableError(absl::StrCat(parts_.roster.located(loss.seat), " is lost: ", loss.why, steps)),
        loss.seat, true},
       actions);
}

void Lifecycle::remove_summer(const Loss& loss, absl::Duration now, Actions& actions) {
  if (!parts_.roster[loss.seat].takes_part()) return;
  parts_.planning.on_summer_lost(loss.seat, loss.why, parts_.has_begun(), now, actions);
  if (!parts_.has_begun()) {
    if (GLN_MUTATION("the job does not begin without a lost summer")) return;
    return begin_if_all_joined(now, actions);
  }
  if (parts_.reattachment.is_under_way()) return finish_reattachment_if_complete(now, actions);
  propose_next(now, actions);
  commit_if_acknowledged(now, actions);
}

void Lifecycle::fail(const Failure& failure, Actions& actions) {
  announce_failure(parts_.outcome.fail(failure, parts_.liveness.last_tick()), actions);
}

void Lifecycle::fail_if(const std::optional<Failure>& failure, Actions& actions) {
  if (failure.has_value()) fail(*failure, actions);
}

void Lifecycle::announce_failure(bool has_ended, Actions& actions) {
  if (!has_ended) return;
  for (uint32_t seat = 0; seat < parts_.roster.size(); ++seat) {
    send(parts_.roster, seat, Failed{parts_.outcome.status_for(seat)}, actions);
  }
}

bool Lifecycle::wait_for_return(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions) {
  const bool reattaching = parts_.reattachment.is_under_way();
  const bool may_return = parts_.admission.may_members_return();
  if (!parts_.liveness.mark_away_if_it_may_return(seat, why, reattaching, may_return, now, actions)) return false;
  if (!parts_.outcome.has_ended()) parts_.reattachment.ask_for_plan(actions);
  return true;
}

void Lifecycle::begin_if_all_joined(absl::Duration now, Actions& actions) {
  if (parts_.phase() != Phase::kGathering || parts_.planning.is_proposed()) return;
  announce_failure(parts_.outcome.check_exits_before_start(), actions);
  const Roster& roster = parts_.roster;
  if (parts_.outcome.has_failed() || !roster.complete()) return;
  for (uint32_t seat = 0; seat < roster.size(); ++seat) {
    if (roster[seat].state != Seat::State::kLeft) continue;
    return fail({absl::UnavailableError(absl::StrCat(roster.located(seat), " ended before the job had begun")), seat},
                actions);
  }
  parts_.admission.correct_welcomes(actions);
  const absl::Status status = parts_.planning.propose_first(now, actions);
  if (!status.ok()) fail({status, std::nullopt}, actions);
}

void Lifecycle::finish_reattachment_if_complete(absl::Duration now, Actions& actions) {
  if (parts_.outcome.has_ended() || !parts_.reattachment.is_complete()) return;
  const Reattachment::Result result = parts_.reattachment.finish();
  parts_.planning.adopt(result.plan, now, actions);
  parts_.steps.on_plan(*result.plan, parts_.planning.summers_at(*result.plan), now);
  parts_.declarations.adopt(result.plan->tensors);
  for (const Reattachment::Declared& early : result.declared) {
    if (!parts_.outcome.has_ended()) declare(early.seat, early.tensors, early.operations, now, actions);
  }
  for (const uint32_t rank : result.leaving) leave(rank, now, actions);
  for (const auto& [member, report] : result.unreachable) {
    const uint32_t seat = parts_.roster.seat_of_member(member);
    carry_out(judge_unreachable_summer(seat, report.epoch, report.why, parts_.roster), now, actions);
  }
  propose_next(now, actions);
  check_declarations(now, actions);
}

void Lifecycle::declare(uint32_t rank, const std::vector<plan::Tensor>& tensors,
                        const std::vector<plan::Operation>& operations, absl::Duration now, Actions& actions) {
  absl::Status status = parts_.declarations.declare(rank, tensors, now);
  if (status.ok()) status = parts_.declarations.operate(rank, operations);
  if (!status.ok()) return fail({status, rank}, actions);
  parts_.planning.add_tensors(parts_.declarations.take_agreed());
}

void Lifecycle::check_declarations(absl::Duration now, Actions& actions) {
  if (!parts_.outcome.has_ended()) fail_if(parts_.steps.deadlocks().check_declarations(now, actions), actions);
}

void Lifecycle::propose_next(absl::Duration now, Actions& actions) {
  if (parts_.reattachment.is_under_way() || parts_.outcome.has_ended()) return;
  set_message_times();
  const absl::Status status = parts_.planning.propose_next(parts_.departures.is_ending(), now, actions);
  if (!status.ok()) fail({status, std::nullopt}, actions);
}

void Lifecycle::set_message_times() {
  parts_.planning.set_round_trip(parts_.steps.efficiency().round_trip_seconds());
  parts_.planning.set_message_overhead(parts_.steps.efficiency().overhead_seconds());
}

void Lifecycle::model_if_measured(Actions& actions) {
  if (parts_.outcome.has_ended() || !parts_.planning.awaits_measurements() || !parts_.steps.have_measured()) return;
  set_message_times();
  parts_.planning.ask_for_first_models(actions);
}

void Lifecycle::commit_if_acknowledged(absl::Duration now, Actions& actions) {
  if (parts_.outcome.has_ended() || !parts_.planning.commit_if_acknowledged(now, actions)) return;
  parts_.steps.on_plan(parts_.planning.in_force(), parts_.planning.summers_at(parts_.planning.in_force()), now);
  propose_next(now, actions);
}

void Lifecycle::leave(uint32_t rank, absl::Duration now, Actions& actions) {
  parts_.outcome.on_left_cleanly(rank);
  parts_.departures.leave(rank, now, actions);
  go_on_after_leave(now, actions);
}

void Lifecycle::go_on_after_leave(absl::Duration now, Actions& actions) {
  parts_.planning.withdraw_unless_needed(actions);
  check_declarations(now, actions);
  commit_if_acknowledged(now, actions);
  if (parts_.departures.have_all_ranks_left() && parts_.outcome.succeed()) {
    send_to_all(parts_.roster, Finished{}, actions);
  }
  if (!parts_.outcome.has_ended()) parts_.reattachment.ask_for_plan(actions);
  finish_reattachment_if_complete(now, actions);
}

}  // namespace gleaner::coordinator
