#include "coordinator/core/core.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/failures/fault_report.h"

namespace gleaner::coordinator {

// Returns the seat of a member that has sent a message; none if Core ignores the message.
std::optional<uint32_t> Core::seat_of_sender(StreamId stream, absl::Duration now) {
  const std::optional<uint32_t> seat = parts_.roster.seat_of(stream);
  if (!seat.has_value() || parts_.outcome.has_ended()) return std::nullopt;
  parts_.roster[*seat].last_heard = now;
  parts_.outcome.on_heard(*seat);
  return seat;
}

std::optional<uint32_t> Core::rank_of_sender(StreamId stream, absl::Duration now) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  return seat.has_value() && !parts_.roster.is_summer(*seat) ? seat : std::nullopt;
}

void Core::stop(const absl::Status& why, Actions& actions) { lifecycle_.fail({why, std::nullopt}, actions); }

void Core::on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume, absl::Duration now,
                     Actions& actions) {
  joining_.on_joined(stream, identity, resume, now, actions);
}

void Core::on_recalled(StreamId stream, plan::Plan plan, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value() || !parts_.reattachment.wants_plan(plan.epoch)) return;
  const absl::Status status = parts_.reattachment.on_plan(*seat, std::move(plan), now, actions);
  if (!status.ok()) return lifecycle_.fail({status, *seat}, actions);
  lifecycle_.finish_reattachment_if_complete(now, actions);
}

void Core::on_ended(Role role, uint32_t index, const absl::Status& how, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> first = parts_.roster.seat_of_index(role, index);
  if (!first.has_value() || parts_.outcome.has_ended()) return;
  if (role == Role::kSummer) return on_summer_ended(*first, how.ok() ? "it has ended" : how.message(), now, actions);
  if (parts_.departures.has_worker_left(*first)) return;
  if (!how.ok()) return lifecycle_.lose({*first, std::string(how.message())}, now, actions);
  if (!parts_.has_begun() && !parts_.admission.may_resume()) {
    return lifecycle_.lose({*first, "it ended before the job had begun"}, now, actions);
  }
  parts_.departures.end_worker(*first, now, actions);
  lifecycle_.go_on_after_leave(now, actions);
  lifecycle_.begin_if_all_joined(now, actions);
}

void Core::on_summer_ended(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions) {
  lifecycle_.lose({seat, std::string(why)}, now, actions);
  if (!parts_.admission.stop_waiting_for(seat, why, now, actions)) return;
  lifecycle_.finish_reattachment_if_complete(now, actions);
  lifecycle_.begin_if_all_joined(now, actions);
}

void Core::on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit, Actions& actions) {
  const std::optional<uint32_t> first = parts_.roster.seat_of_index(Role::kWorker, worker);
  if (!first.has_value() || local_rank >= parts_.options.local_ranks) return;
  const uint32_t seat = *first + local_rank;
  const std::string steps = parts_.steps.efficiency().describe_steps(seat);
  lifecycle_.announce_failure(
      parts_.outcome.on_exited(seat, exit, parts_.has_begun(), steps, parts_.liveness.last_tick()), actions);
}

absl::Status Core::set_summers(uint32_t summers, absl::Duration now, Actions& actions) {
  GLN_RETURN_IF_ERROR(parts_.admission.set_summers(summers, phase(), actions));
  lifecycle_.begin_if_all_joined(now, actions);
  return absl::OkStatus();
}

absl::Status Core::release_summer(uint32_t index, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = parts_.roster.seat_of_index(Role::kSummer, index);
  if (!seat.has_value() || !parts_.roster[*seat].takes_part() || !parts_.has_begun()) {
    return absl::NotFoundError(absl::StrCat("no summer ", index, " takes part"));
  }
  parts_.planning.on_summer_leaves(*seat, parts_.reattachment.is_under_way(), now, actions);
  lifecycle_.propose_next(now, actions);
  return absl::OkStatus();
}

absl::Status Core::set_bandwidth(Role role, uint32_t index, double bits_per_second, absl::Duration now,
                                 Actions& actions) {
  GLN_RETURN_IF_ERROR(parts_.roster.set_bandwidth(role, index, bits_per_second));
  lifecycle_.propose_next(now, actions);
  return absl::OkStatus();
}

absl::Status Core::set_summer_switch(uint32_t index, uint32_t at, absl::Duration now, Actions& actions) {
  GLN_RETURN_IF_ERROR(parts_.planning.set_summer_switch(index, at));
  lifecycle_.propose_next(now, actions);
  return absl::OkStatus();
}

void Core::on_heartbeat(StreamId stream, absl::Duration now) { seat_of_sender(stream, now); }

void Core::on_declared(StreamId stream, const std::vector<plan::Tensor>& tensors,
                       const std::vector<plan::Operation>& operations, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return;
  if (parts_.roster.is_summer(*seat)) {
    const std::string what = absl::StrCat(parts_.roster.located(*seat), " declared tensors; only workers do");
    return lifecycle_.fail({absl::InternalError(what), *seat}, actions);
  }
  if (parts_.reattachment.is_under_way()) return parts_.reattachment.keep({*seat, tensors, operations});
  lifecycle_.declare(*seat, tensors, operations, now, actions);
  lifecycle_.propose_next(now, actions);
  lifecycle_.check_declarations(now, actions);
}

void Core::on_acknowledged(StreamId stream, uint32_t epoch, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return;
  const absl::StatusOr<bool> is_new = parts_.planning.on_acknowledged(*seat, epoch);
  if (!is_new.ok()) return lifecycle_.fail({is_new.status(), *seat}, actions);
  if (*is_new) lifecycle_.commit_if_acknowledged(now, actions);
}

void Core::on_refused(StreamId stream, uint32_t epoch, const absl::Status& why, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return;
  const bool reattaching = parts_.reattachment.is_under_way();
  lifecycle_.carry_out(parts_.planning.on_refused(*seat, epoch, why, reattaching, now, actions), now, actions);
}

void Core::on_report(StreamId stream, const Report& report, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> rank = rank_of_sender(stream, now);
  if (!rank.has_value()) return;
  parts_.steps.on_report(*rank, report, parts_.are_all_in_steps(), now, actions);
  lifecycle_.model_if_measured(actions);
  if (!parts_.are_all_in_steps()) return;
  if (const std::optional<StepTime> step = parts_.steps.take_step_time(now); step.has_value()) {
    parts_.planning.on_step_time(*step, now, actions);
  }
}

void Core::on_waiting(StreamId stream, std::optional<OldestPushPull> waiting, absl::Duration now) {
  const std::optional<uint32_t> rank = rank_of_sender(stream, now);
  if (rank.has_value()) parts_.steps.deadlocks().on_waiting(*rank, std::move(waiting));
}

void Core::on_begun(StreamId stream, const std::string& tensor, uint64_t push_pulls, absl::Duration now) {
  const std::optional<uint32_t> rank = rank_of_sender(stream, now);
  if (rank.has_value()) parts_.steps.deadlocks().on_begun(*rank, tensor, push_pulls);
}

void Core::on_push_pulls(StreamId stream, uint32_t epoch, std::vector<uint64_t> counts, absl::Duration now,
                         Actions& actions) {
  if (!rank_of_sender(stream, now).has_value()) return;
  parts_.planning.on_counts(epoch, std::move(counts), now);
  lifecycle_.propose_next(now, actions);
}

void Core::on_modelled(const ModelRequest& request, absl::StatusOr<strategy::Models> models, absl::Duration now,
                       Actions& actions) {
  parts_.planning.on_modelled(request, std::move(models));
  lifecycle_.propose_next(now, actions);
}

void Core::on_fault(StreamId stream, uint32_t member, uint32_t epoch, const absl::Status& why, absl::Duration now,
                    Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return;
  const FaultReport report{*seat, member, epoch, why};
  if (parts_.reattachment.keeps_reports_of(member)) {
    return parts_.reattachment.keep_unreachable(member, {epoch, describe(report, parts_.roster)});
  }
  lifecycle_.carry_out(judge(report, parts_.roster, parts_.steps.deadlocks()), now, actions);
}

bool Core::on_left(StreamId stream, const absl::Status& status, uint32_t epoch, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value()) return false;
  if (parts_.roster.is_summer(*seat)) {
    on_summer_left(*seat, status, now, actions);
    return false;
  }
  if (status.ok() && parts_.reattachment.is_under_way()) {
    parts_.reattachment.keep_leave(*seat, epoch);
    return false;
  }
  if (status.ok() && parts_.departures.must_stay(epoch, plan())) return false;
  if (status.ok() && parts_.has_begun()) {
    lifecycle_.leave(*seat, now, actions);
  } else {
    lifecycle_.fail(parts_.departures.leave_in_error(*seat, status, now, actions), actions);
  }
  return true;
}

void Core::on_summer_left(uint32_t seat, const absl::Status& status, absl::Duration now, Actions& actions) {
  if (!status.ok()) return lifecycle_.lose({seat, absl::StrCat("it ends: ", status.message())}, now, actions);
  if (!parts_.has_begun()) {
    parts_.planning.release_summer(seat, now, actions);
    return lifecycle_.begin_if_all_joined(now, actions);
  }
  actions.notes.push_back(absl::StrCat(parts_.roster.located(seat), " wants to leave"));
  if (parts_.departures.is_ending()) {
    parts_.planning.release_summer(seat, now, actions);
  } else {
    parts_.planning.on_summer_leaves(seat, parts_.reattachment.is_under_way(), now, actions);
  }
  lifecycle_.propose_next(now, actions);
}

void Core::on_disconnected(StreamId stream, const absl::Status& why, Actions& actions) {
  const std::optional<uint32_t> seat = parts_.roster.seat_of(stream);
  if (!seat.has_value() || parts_.outcome.has_ended()) return;
  const absl::Duration now = parts_.liveness.last_tick();
  if (parts_.reattachment.wants_to_leave(*seat)) return lifecycle_.leave(*seat, now, actions);
  if (absl::IsUnavailable(why) && lifecycle_.wait_for_return(*seat, why.message(), now, actions)) return;
  lifecycle_.lose({*seat, std::string(why.message())}, now, actions);
  // The next round of an elastic job does not wait for a member without a stream.
  if (parts_.outcome.has_suspects()) parts_.roster.vacate(*seat, Seat::State::kAway, now);
}

void Core::on_tick(absl::Duration now, Actions& actions) { time_limits_.on_tick(now, actions); }

Summary Core::summary() const {
  Summary summary = summarize(plan(), parts_.steps.efficiency(), parts_.liveness.last_tick());
  summary.workers = parts_.options.workers;
  summary.summers = parts_.planning.has_plan() ? plan().summers() : parts_.roster.summers();
  summary.local_ranks = parts_.options.local_ranks;
  if (!parts_.planning.has_plan()) summary.bits.in_force = bits_of(parts_.options.reduction);
  summary.strategy_changes = parts_.planning.strategy_changes();
  summary.candidates = parts_.planning.candidate_times();
  if (const strategy::JobNetwork* const network = parts_.options.reduction.network.get()) {
    summary.mapped = strategy::mapped_among(network->mapped, plan().schedules);
  }
  if (const auto tuned = parts_.planning.tuned_schedule()) summary.mapped = {{*tuned, {}}};
  summary.bits.other = parts_.planning.other_bits();
  if (!outcome().has_ended()) return summary;
  summary.succeeded = outcome().status()->ok();
  summary.error = std::string(outcome().status()->message());
  return summary;
}

}  // namespace gleaner::coordinator
