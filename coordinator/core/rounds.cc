#include "coordinator/core/rounds.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/first_few.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "coordinator/failures/liveness.h"
#include "coordinator/failures/outcome.h"

namespace gleaner::coordinator {
Rounds::Rounds(const Options& options, absl::Duration now, Origin origin)
    : options_(options),
      waiting_(options, now),
      core_(std::make_unique<Core>(options, now, options.is_elastic() ? Origin() : std::move(origin))) {
  if (is_elastic()) return;
  number_ = 1;
  gathering_ = false;
}

void Rounds::on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume,
                       absl::Duration now, Actions& actions) {
  if (!is_elastic()) return core_->on_joined(stream, identity, resume, now, actions);
  const absl::Status status = admit(stream, identity, actions);
  if (status.ok()) {
    actions.notes.push_back(absl::StrCat(identity.role == Role::kWorker ? "worker" : "summer",
                                         identity.index.has_value() ? absl::StrCat(" ", *identity.index) : "", " at ",
                                         identity.address, " waits for the next round"));
  } else {
    ++past_.rejected;
    actions.warnings.push_back(absl::StrCat("a member was not admitted: ", status.message()));
    actions.sends.push_back({stream, Rejected{status}});
  }
}

absl::Status Rounds::admit(StreamId stream, const Identity& identity, Actions& actions) {
  if (outcome_.has_value()) return has_ended(*outcome_);
  if (identity.role == Role::kWorker && is_round_on()) {
    const Roster& roster = core_->roster();
    for (uint32_t seat = 0; seat < roster.ranks(); ++seat) {
      if (identity.index != roster.index_of(seat) || roster[seat].state != Seat::State::kPresent) continue;
      // The worker may have been started again before the coordinator noticed its loss. Unavailable makes it try again.
      return absl::UnavailableError(absl::StrCat(roster.located(seat), " is a member of this round already"));
    }
  }
  GLN_ASSIGN_OR_RETURN(const std::optional<StreamId> replaced, waiting_.add(stream, identity));
  if (replaced.has_value()) {
    const absl::Status why =
        absl::AlreadyExistsError(absl::StrCat("another summer ", *identity.index, ", at ", identity.address,
                                              ", has joined in its place; is the same one started twice?"));
    actions.sends.push_back({*replaced, Rejected{why}});
  }
  return absl::OkStatus();
}

void Rounds::on_left(StreamId stream, const absl::Status& status, const Leaving& leaving, absl::Duration now,
                     Actions& actions) {
  if (const auto found = regrouping_.find(stream); found != regrouping_.end()) {
    const uint32_t worker = found->second;
    regrouping_.erase(found);
    if (!leaving.again && status.ok()) {
      waiting_.on_worker_finished(worker);
    } else if (!leaving.again) {
      waiting_.expect_no_longer(worker);
    }
    actions.sends.push_back({stream, Goodbye{}});
    return;
  }
  const std::optional<uint32_t> seat = core_->roster().seat_of(stream);
  const bool has_rank_left = core_->on_left(stream, status, leaving.epoch, now, actions);
  if (has_rank_left && leaving.again && is_elastic()) returning_workers_.push_back(core_->roster().index_of(*seat));
}

void Rounds::on_disconnected(StreamId stream, const absl::Status& why, Actions& actions) {
  last_closed_ = stream;
  if (const auto found = regrouping_.find(stream); found != regrouping_.end()) {
    waiting_.expect_no_longer(found->second);
    regrouping_.erase(found);
  } else if (!waiting_.remove(stream)) {
    core_->on_disconnected(stream, why, actions);
  }
}

void Rounds::on_ended(Role role, uint32_t index, const absl::Status& how, absl::Duration now, Actions& actions) {
  if (role == Role::kWorker) waiting_.expect_no_longer(index);
  const bool is_in_core = !is_elastic() || is_round_on();
  if (is_in_core) core_->on_ended(role, index, how, now, actions);
}

void Rounds::on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit, Actions& actions) {
  if (!is_elastic()) core_->on_exited(worker, local_rank, exit, actions);
}

void Rounds::on_tick(absl::Duration now, Actions& actions) {
  if (number_ > 0) core_->on_tick(now, actions);
  if (!is_elastic() || now - last_heartbeat_ < kHeartbeatEvery) return;
  last_heartbeat_ = now;
  for (const StreamId stream : waiting_.streams()) actions.sends.push_back({stream, Heartbeat{}});
}

void Rounds::stop(const absl::Status& why, Actions& actions) {
  core_->stop(why, actions);
  if (!is_elastic() || outcome_.has_value()) return;
  end_job(why, actions);
}

// No core knows the members that are between two rounds, so they hear the outcome here.
void Rounds::end_job(const absl::Status& how, Actions& actions) {
  outcome_ = how;
  for (const auto& [stream, worker] : std::exchange(regrouping_, {})) actions.sends.push_back({stream, Goodbye{}});
  for (const WaitingMembers::Member& member : waiting_.take_all()) {
    actions.sends.push_back({member.stream, Rejected{has_ended(how)}});
  }
}

void Rounds::go_on(absl::Duration now, Actions& actions) {
  if (!is_elastic() || outcome_.has_value()) return;
  if (is_round_on() && core_->outcome().has_ended()) end_round(now, actions);
  if (outcome_.has_value()) return;
  if (!gathering_) {
    // Summers that join while a round goes on become members of that round.
    if (core_->phase() == Phase::kRunning) {
      for (const WaitingMembers::Member& summer : waiting_.take_summers()) {
        core_->on_joined(summer.stream, summer.identity, std::nullopt, now, actions);
      }
    }
    return send_newcomers(actions);
  }
  if (auto next = waiting_.take(now); next.has_value()) return begin_round(*std::move(next), now, actions);
  if (const absl::Status status = waiting_.check_workers(now); !status.ok()) return end_job(status, actions);
  if (std::optional<std::string> warning = waiting_.warning(now)) actions.warnings.push_back(*std::move(warning));
}

void Rounds::begin_round(WaitingMembers::NextRound next, absl::Duration now, Actions& actions) {
  Options options = options_;
  options.workers = static_cast<uint32_t>(next.workers.size());
  options.summers = static_cast<uint32_t>(next.summers.size());
  options.indices.workers.clear();
  options.indices.summers.clear();
  for (const WaitingMembers::Member& worker : next.workers) options.indices.workers.push_back(*worker.identity.index);
  for (const WaitingMembers::Member& summer : next.summers) options.indices.summers.push_back(*summer.identity.index);
  ++number_;
  gathering_ = false;
  newcomers_ = 0;
  actions.notes.push_back(absl::StrCat("round ", number_, " begins: ", counted(options.workers, "worker"), " (",
                                       first_few(options.indices.workers), "), ", counted(options.summers, "summer")));
  Origin origin;
  origin.epoch = core_->planning().agreement().highest_epoch();
  add_round_to_past();
  core_ = std::make_unique<Core>(options, now, std::move(origin));
  for (auto* side : {&next.workers, &next.summers}) {
    for (const WaitingMembers::Member& member : *side) {
      core_->on_joined(member.stream, member.identity, std::nullopt, now, actions);
    }
  }
}

void Rounds::end_round(absl::Duration now, Actions& actions) {
  const absl::Status how = *core_->outcome().status();
  const bool goes_on = how.ok() ? !returning_workers_.empty() : core_->outcome().is_loss();
  if (!goes_on) return end_job(how, actions);
  ++past_.rounds;
  uint32_t summers = 0;
  const Roster& roster = core_->roster();
  for (uint32_t seat = roster.ranks(); seat < roster.size(); ++seat) {
    if (roster[seat].state == Seat::State::kPresent && core_->outcome().culprit() != seat) ++summers;
  }
  uint32_t done = 0;
  for (uint32_t seat = 0; seat < roster.ranks(); ++seat) {
    const bool again = std::find(returning_workers_.begin(), returning_workers_.end(), roster.index_of(seat)) !=
                       returning_workers_.end();
    if (roster[seat].state == Seat::State::kLeft && !again && core_->outcome().culprit() != seat) ++done;
  }
  send_regroup(actions);
  std::vector<uint32_t> workers = note_returning_workers();
  actions.notes.push_back(absl::StrCat("round ", number_, " is over", how.ok() ? "" : absl::StrCat(": ", how.message()),
                                       "; ", counted(workers.size(), "worker is", "workers are"), " to come back"));
  waiting_.begin_wait(std::move(workers), summers, done, now);
  returning_workers_.clear();
  gathering_ = true;
}

void Rounds::add_round_to_past() {
  const Summary summary = core_->summary();
  past_.steps += summary.whole.steps;
  past_.epochs.insert(past_.epochs.end(), summary.epochs.begin(), summary.epochs.end());
  if (past_.epochs.size() > EfficiencyMeter::kEpochsKept) {
    past_.epochs.erase(past_.epochs.begin(), past_.epochs.end() - EfficiencyMeter::kEpochsKept);
  }
  past_.strategy_changes.insert(past_.strategy_changes.end(), summary.strategy_changes.begin(),
                                summary.strategy_changes.end());
  if (past_.strategy_changes.size() > Planning::kChangesKept) {
    past_.strategy_changes.erase(past_.strategy_changes.begin(), past_.strategy_changes.end() - Planning::kChangesKept);
  }
  past_.rejected += core_->admission().rejected();
  past_.changes += core_->planning().changes();
}

// Failed and Finished of the core end only its round, so members get Regroup instead.
void Rounds::send_regroup(Actions& actions) {
  std::erase_if(actions.sends, [this](const Send& send) { return send.stream == last_closed_; });
  for (Send& send : actions.sends) {
    if (const auto* failed = std::get_if<Failed>(&send.message)) {
      send.message = Regroup{absl::AbortedError(failed->status.message())};
    } else if (std::holds_alternative<Finished>(send.message)) {
      send.message = Regroup{absl::AbortedError("the job goes on with other workers")};
    }
  }
}

// Returns the indices, in order, of the workers that the next round waits for: those that left with `again`, and those
// that are still connected.
std::vector<uint32_t> Rounds::note_returning_workers() {
  const Roster& roster = core_->roster();
  std::vector<uint32_t> awaited;
  for (uint32_t seat = 0; seat < roster.ranks(); ++seat) {
    const uint32_t worker = roster.index_of(seat);
    const bool again =
        std::find(returning_workers_.begin(), returning_workers_.end(), worker) != returning_workers_.end();
    const bool present = roster[seat].state == Seat::State::kPresent;
    // A lost worker may wake up and join again, but the next round does not wait for that.
    const bool culprit = core_->outcome().culprit() == seat && core_->outcome().is_loss();
    if (again || (present && !culprit)) awaited.push_back(worker);
    if (present && roster[seat].stream != last_closed_) regrouping_[roster[seat].stream] = worker;
  }
  return awaited;
}

void Rounds::send_newcomers(Actions& actions) {
  const Roster& roster = core_->roster();
  if (core_->phase() != Phase::kRunning) return;
  const uint32_t room = options_.max_workers - std::min(options_.max_workers, roster.ranks());
  const uint32_t newcomers = std::min(waiting_.workers(), room);
  if (newcomers == newcomers_) return;
  newcomers_ = newcomers;
  for (uint32_t seat = 0; seat < roster.ranks(); ++seat) {
    if (roster[seat].state == Seat::State::kPresent) {
      actions.sends.push_back({roster[seat].stream, Newcomers{newcomers}});
    }
  }
}

Phase Rounds::phase() const {
  if (outcome().has_value()) return Phase::kEnded;
  return is_elastic() && gathering_ ? Phase::kGathering : core_->phase();
}

Summary Rounds::summary() const {
  Summary summary = core_->summary();
  if (!is_elastic()) return summary;
  summary.whole.steps += past_.steps;
  summary.strategy_changes.insert(summary.strategy_changes.begin(), past_.strategy_changes.begin(),
                                  past_.strategy_changes.end());
  summary.epochs.insert(summary.epochs.begin(), past_.epochs.begin(), past_.epochs.end());
  summary.succeeded = outcome_.has_value() && outcome_->ok();
  summary.error = outcome_.has_value() ? std::string(outcome_->message()) : "";
  return summary;
}

}  // namespace gleaner::coordinator
