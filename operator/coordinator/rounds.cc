#include "operator/coordinator/rounds.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kHeartbeatEvery = absl::Seconds(1);

}  // namespace

Rounds::Rounds(const Options& options, absl::Duration now, Origin origin)
    : options_(options),
      lobby_(options, now),
      core_(std::make_unique<Core>(options, now, options.is_elastic() ? Origin() : std::move(origin))) {
  if (is_elastic()) return;
  number_ = 1;
  gathering_ = false;
}

void Rounds::on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume,
                       absl::Duration now, Actions& actions) {
  if (!is_elastic()) return core_->on_joined(stream, identity, resume, now, actions);
  const absl::Status status = let_in(stream, identity);
  if (status.ok()) {
    actions.notes.push_back(absl::StrCat(identity.role == Role::kWorker ? "worker" : "summer",
                                         identity.index.has_value() ? absl::StrCat(" ", *identity.index) : "", " at ",
                                         identity.address, " waits for the next round"));
  } else {
    ++past_.rejected;
    actions.warnings.push_back(absl::StrCat("a member was not let in: ", status.message()));
    actions.sends.push_back({stream, Rejected{status}});
  }
}

absl::Status Rounds::let_in(StreamId stream, const Identity& identity) {
  if (outcome_.has_value()) return absl::FailedPreconditionError("this job has ended");
  if (identity.role == Role::kWorker && is_round_on()) {
    const Roster& roster = core_->roster();
    for (uint32_t seat = 0; seat < roster.ranks(); ++seat) {
      if (identity.index != roster.index_of(seat) || roster[seat].state != Seat::State::kPresent) continue;
      // It may have been started anew before anybody noticed that it was gone.
      return absl::UnavailableError(absl::StrCat(roster.located(seat), " takes part already"));
    }
  }
  return lobby_.enter(stream, identity);
}

void Rounds::on_left(StreamId stream, const absl::Status& status, const Leaving& leaving, absl::Duration now,
                     Actions& actions) {
  if (const auto told = told_.find(stream); told != told_.end()) {
    const uint32_t worker = told->second;
    told_.erase(told);
    if (!leaving.again) lobby_.give_up(worker);
    actions.sends.push_back({stream, Goodbye{}});
    return;
  }
  const std::optional<uint32_t> seat = core_->roster().seat_of(stream);
  core_->on_left(stream, status, leaving.epoch, now, actions);
  if (!leaving.again || !is_elastic() || !seat.has_value() || core_->roster().is_summer(*seat)) return;
  // It may have to stay: then it says so once more.
  if (core_->roster()[*seat].state == Seat::State::kLeft) again_.push_back(core_->roster().index_of(*seat));
}

void Rounds::on_disconnected(StreamId stream, const absl::Status& why, Actions& actions) {
  gone_ = stream;
  if (const auto told = told_.find(stream); told != told_.end()) {
    lobby_.give_up(told->second);
    told_.erase(told);
  } else if (!lobby_.leave(stream)) {
    core_->on_disconnected(stream, why, actions);
  }
}

void Rounds::on_ended(Role role, uint32_t index, const absl::Status& how, absl::Duration now, Actions& actions) {
  if (role == Role::kWorker) lobby_.give_up(index);
  const bool is_over = !is_elastic() || is_round_on();
  if (is_over) core_->on_ended(role, index, how, now, actions);
}

void Rounds::on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit, Actions& actions) {
  if (!is_elastic()) core_->on_exited(worker, local_rank, exit, actions);
}

void Rounds::on_tick(absl::Duration now, Actions& actions) {
  if (number_ > 0) core_->on_tick(now, actions);
  if (!is_elastic() || now - last_heartbeat_ < kHeartbeatEvery) return;
  last_heartbeat_ = now;
  for (const StreamId stream : lobby_.streams()) actions.sends.push_back({stream, Heartbeat{}});
}

void Rounds::stop(const absl::Status& why, Actions& actions) {
  core_->stop(why, actions);
  if (!is_elastic() || outcome_.has_value()) return;
  end_job(why, actions);
}

// Those between two rounds, whom no core knows, hear of it as well.
void Rounds::end_job(const absl::Status& how, Actions& actions) {
  outcome_ = how;
  for (const auto& [stream, worker] : std::exchange(told_, {})) actions.sends.push_back({stream, Goodbye{}});
  const std::string why = how.ok() ? "this job has ended" : absl::StrCat("this job has failed: ", how.message());
  for (const Lobby::Guest& guest : lobby_.take_all()) {
    actions.sends.push_back({guest.stream, Rejected{absl::FailedPreconditionError(why)}});
  }
}

void Rounds::go_on(absl::Duration now, Actions& actions) {
  if (!is_elastic() || outcome_.has_value()) return;
  if (is_round_on() && core_->outcome().has_value()) end_round(now, actions);
  if (outcome_.has_value()) return;
  if (!gathering_) {
    // Those of a round that has begun are taken in by its core.
    if (core_->phase() == Phase::kRunning) {
      for (const Lobby::Guest& summer : lobby_.take_summers()) {
        core_->on_joined(summer.stream, summer.identity, std::nullopt, now, actions);
      }
    }
    return tell_newcomers(actions);
  }
  if (auto party = lobby_.take(now); party.has_value()) return begin_round(*std::move(party), now, actions);
  if (const absl::Status status = lobby_.hopeless(now); !status.ok()) return end_job(status, actions);
  if (std::optional<std::string> warning = lobby_.warning(now)) actions.warnings.push_back(*std::move(warning));
}

void Rounds::begin_round(Lobby::Party party, absl::Duration now, Actions& actions) {
  Options options = options_;
  options.workers = static_cast<uint32_t>(party.workers.size());
  options.summers = static_cast<uint32_t>(party.summers.size());
  options.worker_indices.clear();
  options.summer_indices.clear();
  for (const Lobby::Guest& worker : party.workers) options.worker_indices.push_back(*worker.identity.index);
  for (const Lobby::Guest& summer : party.summers) options.summer_indices.push_back(*summer.identity.index);
  ++number_;
  gathering_ = false;
  newcomers_ = 0;
  actions.notes.push_back(absl::StrCat("round ", number_, " begins: ", options.workers, " workers (",
                                       absl::StrJoin(options.worker_indices, ", "), "), ", options.summers,
                                       " summers"));
  Origin origin;
  origin.epoch = core_->highest_epoch();
  remember_core();
  core_ = std::make_unique<Core>(options, now, std::move(origin));
  for (auto* side : {&party.workers, &party.summers}) {
    for (const Lobby::Guest& guest : *side) {
      core_->on_joined(guest.stream, guest.identity, std::nullopt, now, actions);
    }
  }
}

void Rounds::end_round(absl::Duration now, Actions& actions) {
  const absl::Status how = *core_->outcome();
  const bool goes_on = how.ok() ? !again_.empty() : core_->failed_by_loss();
  if (!goes_on) return end_job(how, actions);
  ++past_.rounds;
  uint32_t summers = 0;
  const Roster& roster = core_->roster();
  for (uint32_t seat = roster.ranks(); seat < roster.size(); ++seat) {
    if (roster[seat].state == Seat::State::kPresent && core_->culprit() != seat) ++summers;
  }
  uint32_t done = 0;
  for (uint32_t seat = 0; seat < roster.ranks(); ++seat) {
    const bool again = std::find(again_.begin(), again_.end(), roster.index_of(seat)) != again_.end();
    if (roster[seat].state == Seat::State::kLeft && !again && core_->culprit() != seat) ++done;
  }
  call_again(actions);
  std::vector<uint32_t> workers = await_workers();
  actions.notes.push_back(absl::StrCat("round ", number_, " is over", how.ok() ? "" : absl::StrCat(": ", how.message()),
                                       "; ", workers.size(), " workers are to come back"));
  lobby_.gather(std::move(workers), summers, done, now);
  again_.clear();
  gathering_ = true;
}

void Rounds::remember_core() {
  const Summary summary = core_->summary();
  past_.steps += summary.steps;
  past_.epochs.insert(past_.epochs.end(), summary.epochs.begin(), summary.epochs.end());
  if (past_.epochs.size() > Progress::kEpochsKept) {
    past_.epochs.erase(past_.epochs.begin(), past_.epochs.end() - Progress::kEpochsKept);
  }
  past_.rejected += core_->rejected();
  past_.changes += core_->changes();
}

// What the core has its members told is about the round, not the job.
void Rounds::call_again(Actions& actions) {
  std::erase_if(actions.sends, [this](const Send& send) { return send.stream == gone_; });
  for (Send& send : actions.sends) {
    if (const auto* failed = std::get_if<Failed>(&send.message)) {
      send.message = Regroup{absl::AbortedError(failed->status.message())};
    } else if (std::holds_alternative<Finished>(send.message)) {
      send.message = Regroup{absl::AbortedError("the job goes on with other workers")};
    }
  }
}

// The round's workers, by index and in order, that are to come back: those that said so, and those that are there.
std::vector<uint32_t> Rounds::await_workers() {
  const Roster& roster = core_->roster();
  std::vector<uint32_t> awaited;
  for (uint32_t seat = 0; seat < roster.ranks(); ++seat) {
    const uint32_t worker = roster.index_of(seat);
    const bool again = std::find(again_.begin(), again_.end(), worker) != again_.end();
    const bool present = roster[seat].state == Seat::State::kPresent;
    // Who was lost may wake up, and say that it comes; nobody waits for that.
    const bool culprit = core_->culprit() == seat && core_->failed_by_loss();
    if (again || (present && !culprit)) awaited.push_back(worker);
    if (present && roster[seat].stream != gone_) told_[roster[seat].stream] = worker;
  }
  return awaited;
}

void Rounds::tell_newcomers(Actions& actions) {
  const Roster& roster = core_->roster();
  if (core_->phase() != Phase::kRunning) return;
  const uint32_t room = options_.max_workers - std::min(options_.max_workers, roster.ranks());
  const uint32_t newcomers = std::min(lobby_.workers(), room);
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
  summary.steps += past_.steps;
  summary.epochs.insert(summary.epochs.begin(), past_.epochs.begin(), past_.epochs.end());
  summary.succeeded = outcome_.has_value() && outcome_->ok();
  summary.error = outcome_.has_value() ? std::string(outcome_->message()) : "";
  return summary;
}

}  // namespace gleaner::coordinator
