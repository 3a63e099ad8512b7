#include "tests/protocol_sim/simulation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/plan/schedule_name.h"
#include "tests/protocol_sim/strategies.h"

namespace gleaner::sim {
namespace {

// Limits far above what any scenario needs.
constexpr uint64_t kMostEvents = 3'000'000;
constexpr Nanoseconds kLongest = 60'000 * kMillisecond;
constexpr size_t kMostSummers = 12;

bool is_loss(Fault fault) {
  return fault == Fault::kForget || fault == Fault::kUsurp || fault == Fault::kTogether || fault == Fault::kDie ||
         fault == Fault::kWorker || fault == Fault::kStreamBreak;
}

}  // namespace

absl::Status silent() { return absl::DeadlineExceededError("it has been silent"); }
absl::Status broken() { return absl::UnavailableError("connection reset"); }

Simulation::Simulation(const Scenario& scenario, const kernels::Kernels* kernels, Report* report)
    : world_(scenario, report,
             [this](Direction direction, uint32_t worker, uint32_t summer, const wire::Header& header, Buffer payload) {
               if (direction == Direction::kToWorker) {
                 const bool is_result = header.type == wire::FrameType::kResult;
                 if (is_result && summer >= workers_.size()) summer_of(summer)->on_pulled();
                 workers_[worker]->deliver_answer(summer, header, payload);
               } else if (summer < workers_.size()) {
                 workers_[summer]->deliver_from_worker(worker, header, payload);
               } else {
                 summer_of(summer)->deliver(worker, header, payload);
               }
             }),
      control_(&world_),
      kernels_(kernels),
      told_ended_(scenario.job.workers) {
  faults::chooser() = [this](const faults::Site& site) {
    if (site.kind == faults::Kind::kMutation) return world_.report->mutation == site.name;
    return world_.events.now() < world_.scenario.inject_until && world_.dice.chance(world_.scenario.inject_chance);
  };
  world_.reachable = [this](uint32_t worker, uint32_t process) { return is_reachable(worker, process); };
  world_.connected = [this](uint32_t worker, uint32_t process) {
    if (process < workers_.size()) return workers_[process]->connected_to_summer(worker);
    summer_of(process)->on_connected(worker);
  };
  world_.close = [this](uint32_t worker, uint32_t process) { workers_[worker]->lose(process); };
  world_.on_left_alone = [this](uint32_t process) { on_left_alone(process); };
  for (uint32_t i = 0; i < scenario.job.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(i, kernels, &world_, &control_));
  }
  for (uint32_t i = 0; i < scenario.job.workers; ++i) {
    world_.events.after(world_.dice.between(0, 3 * kMillisecond), [this, i] { tick(i); });
    if (scenario.early) {
      world_.events.after(world_.dice.between(0, 20 * kMillisecond), [this, i] { workers_[i]->begin(); });
    } else {
      workers_[i]->begin();
    }
  }
  for (uint32_t i = 0; i < scenario.job.summers; ++i) add_summer(0);
  for (const FaultAt& fault : scenario.faults) {
    later((scenario.early ? 0 : 30 * kMillisecond) + fault.time, [this, what = fault.what] { begin_fault(what); });
  }
}

Simulation::~Simulation() {
  faults::chooser() = [](const faults::Site&) { return false; };
}

void Simulation::add_summer(double bits_per_second) {
  const auto number = static_cast<uint32_t>(workers_.size() + summers_.size());
  summers_.push_back(std::make_unique<CpuSummer>(number, bits_per_second, kernels_, &world_, &control_));
  summers_.back()->begin();
}

CpuSummer* Simulation::summer_of(uint32_t process) { return summers_[process - workers_.size()].get(); }

void Simulation::later(Nanoseconds delay, std::function<void()> what) {
  ++world_.pending;
  world_.events.after(delay, [this, what = std::move(what)] {
    --world_.pending;
    what();
  });
}

bool Simulation::is_reachable(uint32_t worker, uint32_t process) {
  if (worker == process) return true;
  if (world_.network.is_cut(worker, process)) return false;
  if (process < workers_.size()) return !workers_[process]->finished() && !workers_[process]->is_paused();
  return !summer_of(process)->is_gone() && !summer_of(process)->is_paused();
}

// Some losses wait for a change of strategy, since push_pulls are held only for a moment.
void Simulation::begin_fault(Fault fault) {
  constexpr Nanoseconds kHoldsWithin = 60 * kMillisecond;
  const bool waits = is_loss(fault) && world_.scenario.has(Fault::kSteps) && world_.dice.chance(0.6);
  waits ? happen_in_hold(fault, kHoldsWithin) : happen(fault);
}

void Simulation::happen(Fault fault) {
  if (!may_happen(fault)) return;
  if (is_loss(fault) && is_any_held()) ++world_.report->coverage.lost_in_hold;
  switch (fault) {
    case Fault::kDisconnect:
      return disconnect();
    case Fault::kCut:
      return cut();
    case Fault::kThaw:
      return thaw();
    case Fault::kFlap:
      return flap();
    case Fault::kLostReport:
      return lose_a_report();
    case Fault::kCrash:
      return lose_summer(true);
    case Fault::kFreeze:
      return lose_summer(false);
    case Fault::kPause:
      return pause_somebody();
    case Fault::kArrive:
      if (summers_.size() == kMostSummers) return;
      note(fault, pick_summer());
      return add_summer(static_cast<double>(world_.dice.between(1, 100)) * 1e8);
    case Fault::kDrain:
      if (CpuSummer* const summer = pick_summer(); summer != nullptr) {
        note(fault, summer);
        allow_to_fail_without(*summer);
        summer->leave();
      }
      return;
    case Fault::kBandwidth:
      note(fault, pick_summer());
      return change_bandwidth();
    case Fault::kSlow:
      note(fault, pick_summer());
      return report_slow_summers();
    case Fault::kForget:
      note(fault, pick_summer());
      return replace_coordinator();
    case Fault::kUsurp:
      note(fault, pick_summer());
      return usurp_coordinator();
    case Fault::kStreamBreak:
      note(fault, pick_summer());
      return break_a_stream();
    case Fault::kTogether:
      lose_summer(true);
      note(fault, pick_summer());
      return replace_coordinator();
    case Fault::kDie:
      return lose_coordinator();
    case Fault::kWorker:
      return lose_worker();
    case Fault::kSteps:
      note(fault, pick_summer());
      return step_reports_.send(world_, control_);
  }
}

// Counts the fault with the moment at which it happens. `summer` is the one that the fault affects, or else any; null:
// there is none.
void Simulation::note(Fault fault, const CpuSummer* summer) {
  const coordinator::Core& core = control_.core();
  Moment moment = summer == nullptr ? Moment::kIdle : summer->summer().moment();
  if (!has_begun()) {
    moment = Moment::kBeginning;
  } else if (core.phase() == coordinator::Phase::kReattaching || core.planning().has_lost_summer()) {
    moment = Moment::kRecovery;
  } else if (core.planning().agreement().proposed_epoch() > 0) {
    moment = Moment::kChange;
  }
  ++world_.report->coverage.faults[static_cast<size_t>(fault)][static_cast<size_t>(moment)];
}

CpuSummer* Simulation::pick_summer() {
  std::vector<CpuSummer*> alive;
  for (const auto& summer : summers_) {
    if (!summer->is_gone()) alive.push_back(summer.get());
  }
  return alive.empty() ? nullptr : alive[world_.dice.below(alive.size())];
}

uint32_t Simulation::process_of(const CpuSummer* summer) const {
  const auto place = std::ranges::find_if(summers_, [summer](const auto& each) { return each.get() == summer; });
  return static_cast<uint32_t>(workers_.size() + static_cast<size_t>(place - summers_.begin()));
}

// Picks a worker and the process of another member to which it is connected.
std::optional<std::pair<uint32_t, uint32_t>> Simulation::pick_connection() {
  const auto worker = static_cast<uint32_t>(world_.dice.below(workers_.size()));
  const auto process = static_cast<uint32_t>(world_.dice.below(workers_.size() + summers_.size()));
  if (worker == process || !world_.network.connected(worker, process)) return std::nullopt;
  ++world_.report->coverage.disconnects;
  return std::pair(worker, process);
}

void Simulation::disconnect() {
  const auto picked = pick_connection();
  if (!picked.has_value()) return;
  const auto [worker, process] = *picked;
  note(Fault::kDisconnect, process < workers_.size() ? pick_summer() : summer_of(process));
  workers_[worker]->lose(process);
}

void Simulation::cut() {
  const auto picked = pick_connection();
  if (!picked.has_value()) return;
  const auto [worker, process] = *picked;
  const bool to_summer = process >= workers_.size();
  note(Fault::kCut, to_summer ? summer_of(process) : pick_summer());
  cut_from(worker, process, to_summer && world_.dice.chance(0.3));
}

// Cuts a connection. A cut between two workers must not be for good, since the job can't continue without their
// connection.
void Simulation::cut_from(uint32_t worker, uint32_t process, bool for_good) {
  const bool there = world_.dice.chance(0.6), back = !there || world_.dice.chance(0.6);
  world_.report->trace(world_.events.now(), "worker ", worker, " is cut from process ", process, there ? ", there" : "",
                       back ? ", back" : "", for_good ? ", for good" : "");
  world_.network.set_cut(worker, process, Direction::kToOwner, there);
  world_.network.set_cut(worker, process, Direction::kToWorker, back);
  // A worker soon closes its connection to a silent summer. For a silent worker it waits for the whole deadline, which
  // is longer than a cut lasts, so between workers the connection breaks instead.
  const bool to_summer = process >= workers_.size();
  later(world_.dice.between(5, 20) * kMillisecond,
        [this, worker, process, to_summer] { workers_[worker]->lose(process, to_summer ? silent() : broken()); });
  if (for_good) return;
  const bool long_one = to_summer && world_.dice.chance(0.5);
  later((long_one ? 150 : 25) * kMillisecond, [this, worker, process] {
    world_.network.set_cut(worker, process, Direction::kToOwner, false);
    world_.network.set_cut(worker, process, Direction::kToWorker, false);
  });
}

// Limits a connection. As for cut_from(), not for good between workers.
void Simulation::flap() {
  const auto picked = pick_connection();
  if (!picked.has_value()) return;
  const auto [worker, process] = *picked;
  const bool to_summer = process >= workers_.size();
  note(Fault::kFlap, to_summer ? summer_of(process) : pick_summer());
  const auto limit = world_.dice.pick<uint64_t>({64, 200, 1000});
  const bool for_good = to_summer && world_.dice.chance(0.5);
  world_.report->trace(world_.events.now(), "worker ", worker, "'s connections to process ", process, " break after ",
                       limit, " bytes", for_good ? ", for good" : "");
  world_.network.set_limit(worker, process, limit);
  if (for_good) return;
  later(world_.dice.between(10, 100) * kMillisecond,
        [this, worker = worker, process = process] { world_.network.set_limit(worker, process, Network::kUnlimited); });
}

void Simulation::lose_a_report() {
  const CpuSummer* const summer = pick_summer();
  const auto worker = static_cast<uint32_t>(world_.dice.below(workers_.size()));
  if (summer == nullptr || !world_.network.connected(worker, process_of(summer))) return;
  note(Fault::kLostReport, summer);
  workers_[worker]->lose_next_report();
  cut_from(worker, process_of(summer), true);
}

void Simulation::all_lose(uint32_t process, Nanoseconds least, Nanoseconds most, const absl::Status& why) {
  for (const auto& worker : workers_) {
    later(world_.dice.between(least, most), [&worker, process, why] { worker->lose(process, why); });
  }
}

// Pauses a summer for longer than workers wait for it. Afterwards it continues from its old state.
void Simulation::thaw() {
  CpuSummer* const summer = pick_summer();
  if (summer == nullptr) return;
  note(Fault::kThaw, summer);
  const Nanoseconds duration = world_.dice.between(20, 250) * kMillisecond;
  world_.report->trace(world_.events.now(), "process ", process_of(summer), " freezes for ", duration / kMillisecond,
                       " ms");
  summer->pause(duration);
  all_lose(process_of(summer), 5 * kMillisecond, 20 * kMillisecond, silent());
}

void Simulation::pause_somebody() {
  const Nanoseconds duration = world_.dice.between(1, 40) * kMillisecond;
  const uint64_t who = world_.dice.below(workers_.size() + summers_.size());
  world_.report->trace(world_.events.now(), "process ", who, " pauses for ", duration / kMillisecond, " ms");
  note(Fault::kPause, who < workers_.size() ? pick_summer() : summers_[who - workers_.size()].get());
  if (who < workers_.size()) return workers_[who]->pause(duration);
  summers_[who - workers_.size()]->pause(duration);
}

void Simulation::change_bandwidth() {
  const bool worker = world_.dice.chance(0.5);
  const auto index = static_cast<uint32_t>(world_.dice.below(4));
  const double bits = static_cast<double>(world_.dice.between(1, 100)) * 1e8;
  control_.order([&](Control::Core& core, absl::Duration now, coordinator::Actions& actions) {
    // The call fails if there is no such member, which changes nothing.
    (void)core.set_bandwidth(worker ? coordinator::Role::kWorker : coordinator::Role::kSummer, index, bits, now,
                             actions);
  });
}

// Reports measurements of the next seconds for all workers: some summers are late, and steps get longer or shorter. The
// sums of the simulation take no part in these figures.
void Simulation::report_slow_summers() {
  constexpr uint64_t kStepsPerReport = 100;
  std::vector<bool> late(kMostSummers);
  for (auto&& each : late) each = world_.dice.chance(0.5);
  const bool is_faster = world_.dice.chance(0.5);
  control_.order([&](Control::Core& core, absl::Duration now, coordinator::Actions& actions) {
    for (uint64_t second = 0; second < 5; ++second) {
      const uint64_t passed = reported_seconds_++;
      reported_steps_ += is_faster ? 4 * kStepsPerReport : kStepsPerReport;
      for (uint32_t worker = 0; worker < workers_.size(); ++worker) {
        if (workers_[worker]->is_lost()) continue;
        coordinator::Report report = report_of_message_times();
        report.steps = reported_steps_;
        report.communication_seconds = static_cast<double>(passed);
        report.epoch = core.plan().epoch;
        for (uint32_t i = 0; i < late.size(); ++i) {
          if (late[i]) report.late.push_back({core.plan().workers + i, static_cast<double>(passed)});
        }
        core.on_report(core.roster()[worker].stream, report, now + absl::Seconds(second), actions);
      }
    }
  });
}

void Simulation::break_a_stream() {
  const uint64_t who = world_.dice.below(workers_.size() + summers_.size());
  if (who < workers_.size()) {
    if (world_.scenario.single_coordinator) allow_to_fail_without_stream(static_cast<uint32_t>(who));
    return workers_[who]->break_stream();
  }
  if (!summers_[who - workers_.size()]->is_gone()) summers_[who - workers_.size()]->break_stream();
}

void Simulation::tick(uint32_t worker) {
  workers_[worker]->tick();
  tell_of_ended_workers();
  if (!world_.over) world_.events.after(world_.scenario.tick, [this, worker] { tick(worker); });
}

void Simulation::run() {
  while (!world_.report->failure() && world_.events.step()) {
    if (!world_.over) {
      world_.over =
          world_.pending == 0 && std::ranges::all_of(workers_, [](const auto& worker) { return worker->finished(); });
    }
    if (world_.events.happened() > kMostEvents || world_.events.now() > kLongest) {
      world_.report->fail("no end after ", world_.events.happened(), " events and ", world_.events.now() / kMillisecond,
                          " ms: ", who_waits());
    }
  }
  world_.report->coverage.events += world_.events.happened();
  if (!world_.report->failure()) check_end();
}

std::string Simulation::who_waits() const {
  std::string text;
  for (const auto& worker : workers_) absl::StrAppend(&text, worker->describe(), "; ");
  const coordinator::Core& core = control_.core();
  absl::StrAppend(&text, "plan of epoch ", core.plan().epoch, ", proposed ",
                  core.planning().agreement().proposed_epoch());
  return text;
}

void Simulation::check_end() {
  for (const auto& worker : workers_) worker->check_end();
  if (std::ranges::none_of(workers_, [](const auto& worker) { return worker->failed() || worker->is_lost(); })) {
    world_.accumulated.check_end();
  }
  for (const auto& summer : summers_) summer->summer().count();
  const coordinator::Changes& changes = control_.core().planning().changes();
  Coverage& coverage = world_.report->coverage;
  coverage.plans += control_.core().plan().epoch;
  if (absl::StrContains(plan::strategy_of(control_.core().plan()), ", ")) ++coverage.mixed_plans;
  coverage.recovered += changes.recovered;
  coverage.moved_plans += changes.moved;
  coverage.given_up += changes.withdrawn;
  coverage.strategy_changes += changes.strategies;
  if (tunes_masters(world_.scenario.job)) coverage.master_changes += changes.strategies;
  coverage.summers_lost += changes.lost;
  coverage.summers_came += changes.came;
  coverage.summers_left += changes.left;
  workers_.clear();
  summers_.clear();
  if (world_.pool.bytes_in_use() != 0) world_.report->fail(world_.pool.bytes_in_use(), " bytes of buffers leaked");
}

}  // namespace gleaner::sim
