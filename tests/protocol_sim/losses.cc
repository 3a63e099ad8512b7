// The part of Simulation that loses members and the coordinator, and knows what the job may then do.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/protocol_sim/simulation.h"

namespace gleaner::sim {
namespace {

constexpr Nanoseconds kCommitsWithin = 200 * kMillisecond;
// Time after which a worker that no coordinator has admitted gives up (terms_of() in follower.cc).
constexpr Nanoseconds kGivesUpJoining = 12'000 * kMillisecond;

Nanoseconds nanoseconds(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }

// The part of the error that ends a worker whose push_pulls wait for a change of strategy without a coordinator.
constexpr char kLostInChange[] = "the coordinator was lost during a change of strategy";

// Any summer; for messages that name a summer by its index, which can't be told from its process.
constexpr char kAnySummer[] = "summer ";

bool is_loss_of_summer(Fault fault) {
  return fault == Fault::kCrash || fault == Fault::kFreeze || fault == Fault::kThaw;
}

}  // namespace

bool Simulation::has_begun() const {
  return std::ranges::all_of(workers_, [](const auto& worker) { return worker->has_begun() || worker->is_lost(); });
}

// Returns whether the fault may happen at the moment: the job must survive it, or may fail. Other faults are skipped.
bool Simulation::may_happen(Fault fault) {
  const bool may_fail = world_.scenario.may_fail;
  if (world_.coordinator_is_gone) {
    const bool is_loss = is_loss_of_summer(fault) || fault == Fault::kWorker;
    return fault == Fault::kDisconnect || fault == Fault::kPause || (may_fail && is_loss);
  }
  if (fault == Fault::kSteps) return has_begun() && control_.core().phase() == coordinator::Phase::kRunning;
  if (fault == Fault::kDie) return may_die();
  if (control_.core().phase() == coordinator::Phase::kEnded) return false;
  const bool begun = has_begun();
  const bool needs_another = fault == Fault::kForget || fault == Fault::kUsurp || fault == Fault::kTogether ||
                             fault == Fault::kStreamBreak || fault == Fault::kLostReport;
  const bool may_break_stream = fault == Fault::kStreamBreak && may_fail && is_gathering();
  if (needs_another && world_.scenario.single_coordinator && !may_break_stream) return false;
  const bool recovers = control_.core().phase() == coordinator::Phase::kReattaching;
  if (recovers && (fault == Fault::kArrive || fault == Fault::kDrain)) return false;
  if (begun) return true;
  // Before the job has begun, the loss of a member may end it, so only faults without a loss are allowed unless the job
  // may fail. The coordinator may be replaced only while no summer is lost, since the next one waits for all members
  // that the job begins with.
  const bool may = may_fail || fault == Fault::kPause || fault == Fault::kStreamBreak ||
                   (fault == Fault::kForget && control_.core().planning().changes().lost == 0);
  if (may) ++world_.report->coverage.early_faults;
  return may;
}

// Returns whether the coordinator waits for members, and has proposed no plan.
bool Simulation::is_gathering() const {
  const coordinator::Core& core = control_.core();
  return control_.is_there() && core.phase() == coordinator::Phase::kGathering &&
         core.planning().agreement().proposed_epoch() == 0;
}

// Returns whether the coordinator may be lost for good at the moment. If the job must survive that, no connection is
// bad, no member is lost, and all workers follow plans that have all tensors and whose summers are all present. A
// change of the plan may be in progress only if the scenario has a single coordinator: then members complete, without a
// coordinator, a plan that one of them has committed. Otherwise they leave that to the next coordinator. If the job may
// fail, summers may be lost, and a single coordinator may also be lost before the first plan is proposed.
bool Simulation::may_die() {
  const coordinator::Core& core = control_.core();
  const bool may_change = world_.scenario.single_coordinator;
  const bool may_fail = world_.scenario.may_fail;
  if (std::ranges::any_of(workers_, [](const auto& worker) { return worker->is_lost() || worker->failed(); })) {
    return false;
  }
  if (may_change && may_fail && is_gathering()) return true;
  const bool quiet = control_.is_there() && core.phase() == coordinator::Phase::kRunning &&
                     (may_change || core.planning().agreement().proposed_epoch() == 0);
  if (!quiet || world_.network.is_any_path_bad() || core.plan().tensors.size() < world_.scenario.tensors.size()) {
    return false;
  }
  const auto has_its_summers = [&](const plan::Plan& plan) { return may_fail || has_all_summers(plan); };
  if ((core.planning().has_lost_summer() && !may_fail) || !has_its_summers(core.plan())) return false;
  const auto is_there = [&](const auto& worker) { return worker->follows(core.plan().epoch); };
  if (!may_change) return std::ranges::all_of(workers_, is_there);
  // If no worker follows the newest plan, all stay with an earlier one, so the summers of that plan must be present.
  const bool known = std::ranges::any_of(workers_, is_there);
  return std::ranges::all_of(workers_, [&](const auto& worker) {
    return worker->has_all_tensors() && (known || has_its_summers(worker->plan()));
  });
}

bool Simulation::has_all_summers(const plan::Plan& plan) {
  for (uint32_t member = plan.workers; member < plan.members.size(); ++member) {
    const plan::Member& summer = plan.members[member];
    if (!summer.is_here()) continue;
    const CpuSummer& process = *summer_of(number_of(summer.address));
    if (process.is_gone() || process.is_leaving() || process.is_paused()) return false;
  }
  return true;
}

bool Simulation::is_any_held() const {
  return std::ranges::any_of(workers_, [](const auto& worker) { return worker->holds(); });
}

// Waits until a worker holds push_pulls, but no longer than `within`.
void Simulation::happen_in_hold(Fault fault, Nanoseconds within) {
  constexpr Nanoseconds kLook = kMillisecond / 10;
  if (within > 0 && !is_any_held()) {
    return later(kLook, [this, fault, within] { happen_in_hold(fault, within - kLook); });
  }
  happen(fault);
}

// Returns whether workers without a coordinator may be left with a change of strategy that no worker follows yet.
bool Simulation::may_hang_in_change() const {
  const auto follows = [](uint32_t epoch) { return [epoch](const auto& worker) { return worker->follows(epoch); }; };
  const auto hangs = [&](const auto& worker) {
    const plan::Plan* const change = worker->prepared_change();
    return change != nullptr && std::ranges::none_of(workers_, follows(change->epoch));
  };
  return std::ranges::any_of(workers_, hangs);
}

void Simulation::allow_to_end_in_hold() {
  if (!may_hang_in_change()) return;
  world_.causes.add(kLostInChange, world_.events.now() + nanoseconds(timeout_without_coordinator()));
}

void Simulation::lose_coordinator() {
  // Members that are not admitted yet look for the coordinator for so long that few jobs may do this.
  if (is_gathering() && !world_.dice.chance(0.25)) return;
  if (world_.scenario.single_coordinator && !is_gathering() && !is_any_held() && world_.dice.chance(0.7)) {
    return die_after_commit(control_.core().plan().epoch, kCommitsWithin);
  }
  note(Fault::kDie, pick_summer());
  die();
}

// Waits until a plan above this epoch is committed, and then loses the coordinator for good, so early that only some
// members may have been told. Gives up after `within`.
void Simulation::die_after_commit(uint32_t epoch, Nanoseconds within) {
  constexpr Nanoseconds kLook = kMillisecond / 10;
  if (world_.coordinator_is_gone) return;
  if (control_.core().plan().epoch == epoch) {
    if (within > 0) later(kLook, [this, epoch, within] { die_after_commit(epoch, within - kLook); });
    return;
  }
  later(world_.dice.between(0, 3 * kMillisecond), [this] {
    if (world_.coordinator_is_gone || !may_die()) return;
    ++world_.report->coverage.faults[static_cast<size_t>(Fault::kDie)][static_cast<size_t>(Moment::kChange)];
    die();
  });
}

// Loses the coordinator for good. The job may then fail if a summer of its plan is lost, or if it has not begun.
void Simulation::die() {
  if (is_gathering()) world_.causes.add("the coordinator at", world_.events.now() + kGivesUpJoining);
  control_.die();
  allow_to_end_in_hold();
  for (const auto& summer : summers_) {
    if (summer->is_gone() || summer->is_leaving()) allow_to_fail_without(*summer);
    // Workers may not have been told of the plan without a summer that has left.
    if (summer->is_gone()) on_left_alone(process_of(summer.get()));
  }
  // Without this a worker's loss after the coordinator's is rare.
  if (world_.scenario.may_fail && world_.dice.chance(0.3)) {
    later(world_.dice.between(0, 20 * kMillisecond), [this] { lose_worker(); });
  }
}

// The next coordinator waits for the members that the job begins with, also for those that are lost.
void Simulation::replace_coordinator() {
  allow_to_begin_late(false);
  control_.forget();
}

void Simulation::usurp_coordinator() {
  allow_to_begin_late(true);
  control_.usurp();
}

// Called when the coordinator is replaced. `may_lose`: members that have not moved to the next one may still be lost.
void Simulation::allow_to_begin_late(bool may_lose) {
  const Nanoseconds until = world_.events.now() + kMillisecond * 50 + nanoseconds(world_.scenario.job.start_timeout);
  for (const auto& worker : workers_) {
    if (worker->is_lost()) worker->may_cause_errors(until);
  }
  if (has_begun()) return;
  const auto is_lost = [](const auto& summer) { return summer->is_gone() || summer->is_leaving(); };
  if (may_lose || std::ranges::any_of(summers_, is_lost)) world_.causes.add(kAnySummer, until);
}

// Returns how long members wait for a lost member when the coordinator is lost for good.
absl::Duration Simulation::timeout_without_coordinator() const {
  const coordinator::Options& job = world_.scenario.job;
  return world_.scenario.single_coordinator ? job.deadline : job.start_timeout;
}

// Called when a summer is lost or leaves. The job goes on without it, unless there is no coordinator that could make
// another plan, or the coordinator does not know that summer yet and so waits for it.
void Simulation::allow_to_fail_without(const CpuSummer& summer) {
  const coordinator::Options& job = world_.scenario.job;
  const Nanoseconds now = world_.events.now();
  if (world_.coordinator_is_gone) {
    return world_.causes.add(absl::StrCat("at ", summer.address()), now + nanoseconds(timeout_without_coordinator()));
  }
  if (has_begun() || has_joined(summer)) return;
  world_.causes.add(kAnySummer, now + nanoseconds(job.start_timeout));
}

// Called when a worker's stream breaks while a single coordinator waits for members: that worker can't come back.
void Simulation::allow_to_fail_without_stream(uint32_t worker) {
  workers_[worker]->may_cause_errors(world_.events.now());
  world_.causes.add("was lost before the job had begun", world_.events.now());
}

// Returns whether the coordinator has admitted the summer, and will notice its loss.
bool Simulation::has_joined(const CpuSummer& summer) const {
  const coordinator::Roster& roster = control_.core().roster();
  for (uint32_t seat = roster.ranks(); seat < roster.size(); ++seat) {
    if (roster[seat].takes_part() && roster[seat].identity.address == summer.address()) return control_.is_there();
  }
  return false;
}

void Simulation::lose_summer(bool at_once) {
  CpuSummer* const summer = pick_summer();
  if (summer == nullptr) return;
  note(at_once ? Fault::kCrash : Fault::kFreeze, summer);
  const uint32_t process = process_of(summer);
  if (world_.coordinator_is_gone) ++world_.report->coverage.lost_alone;
  allow_to_fail_without(*summer);
  world_.report->trace(world_.events.now(), "process ", process, at_once ? " crashes" : " freezes");
  if (at_once) {
    summer->crash();
    all_lose(process, 0, 3 * kMillisecond, broken());
    if (world_.scenario.indexed)
      tell_of_end(coordinator::Role::kSummer, process - static_cast<uint32_t>(workers_.size()));
  } else {
    summer->freeze();
    all_lose(process, 5 * kMillisecond, 20 * kMillisecond, silent());
  }
}

// Called when a summer's process ends because it leaves and the coordinator is lost for good.
void Simulation::on_left_alone(uint32_t process) {
  later(0, [this, process] {
    CpuSummer* const summer = summer_of(process);
    if (summer->is_dead()) return;
    allow_to_fail_without(*summer);
    world_.report->trace(world_.events.now(), "process ", process, " leaves without a coordinator");
    summer->crash();
    all_lose(process, 0, 3 * kMillisecond, broken());
  });
}

// Loses a worker, which ends the job: the other workers get an error that names it.
void Simulation::lose_worker() {
  const auto index = static_cast<uint32_t>(world_.dice.below(workers_.size()));
  Worker& worker = *workers_[index];
  if (worker.finished()) return;
  note(Fault::kWorker, pick_summer());
  ++world_.report->coverage.workers_lost;
  if (worker.has_begun() && !worker.plan().schedules.empty()) ++world_.report->coverage.scheduled_losses;
  if (world_.coordinator_is_gone) allow_to_end_in_hold();
  const coordinator::Options& job = world_.scenario.job;
  const coordinator::Core& core = control_.core();
  const bool is_known =
      control_.is_there() && core.phase() != coordinator::Phase::kReattaching && core.roster()[index].takes_part();
  const absl::Duration limit = world_.coordinator_is_gone ? timeout_without_coordinator()
                               : is_known                 ? job.deadline + job.return_timeout
                                                          : job.start_timeout;
  worker.may_cause_errors(world_.events.now() + nanoseconds(limit));
  const bool at_once = world_.dice.chance(0.5);
  world_.report->trace(world_.events.now(), worker.name(), at_once ? " crashes" : " freezes");
  if (at_once) {
    worker.crash();
    all_lose(index, 0, 3 * kMillisecond, broken());
    if (world_.scenario.indexed) tell_of_end(coordinator::Role::kWorker, world_.scenario.index_of_worker(index));
  } else {
    worker.freeze();
    all_lose(index, 5 * kMillisecond, 20 * kMillisecond, silent());
    later(world_.dice.between(1600 * kMillisecond, 1900 * kMillisecond), [this] { give_up_on_frozen_worker(); });
  }
}

// Crashes a second worker shortly before the frozen one has been silent for the deadline. Errors still have to name the
// frozen worker.
void Simulation::give_up_on_frozen_worker() {
  const auto index = static_cast<uint32_t>(world_.dice.below(workers_.size()));
  Worker& worker = *workers_[index];
  if (!control_.is_there() || worker.is_lost() || worker.finished()) return;
  const coordinator::Core& core = control_.core();
  if (core.phase() != coordinator::Phase::kRunning || core.outcome().has_failed()) return;
  world_.report->trace(world_.events.now(), worker.name(), " gives up");
  worker.crash();
  all_lose(index, 0, 3 * kMillisecond, broken());
  if (world_.scenario.indexed) tell_of_end(coordinator::Role::kWorker, world_.scenario.index_of_worker(index));
}

// Tells the coordinator which workers have ended, as the operator does when their pods end.
void Simulation::tell_of_ended_workers() {
  const auto has_ended = [&](uint32_t i) { return workers_[i]->finished() && !workers_[i]->is_lost(); };
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    if (has_ended(i) && workers_[i]->stop()) all_lose(i, 0, 3 * kMillisecond, broken());
  }
  if (control_.incarnations() != incarnations_) {
    incarnations_ = control_.incarnations();
    told_ended_.assign(told_ended_.size(), false);
  }
  if (!control_.is_there()) return;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    if (!has_ended(i) || told_ended_[i]) continue;
    told_ended_[i] = true;
    const absl::Status how =
        workers_[i]->failed() ? absl::UnavailableError("it exited with status 1") : absl::OkStatus();
    const uint32_t index = world_.scenario.index_of_worker(i);
    control_.order([index, how](Control::Core& core, absl::Duration now, coordinator::Actions& actions) {
      core.on_ended(coordinator::Role::kWorker, index, how, now, actions);
    });
  }
}

// Tells the coordinator some time later that a member was killed.
void Simulation::tell_of_end(coordinator::Role role, uint32_t index) {
  later(world_.dice.between(0, 100 * kMillisecond), [this, role, index] {
    control_.order([role, index](Control::Core& core, absl::Duration now, coordinator::Actions& actions) {
      core.on_ended(role, index, absl::UnavailableError("killed"), now, actions);
    });
  });
}

}  // namespace gleaner::sim
