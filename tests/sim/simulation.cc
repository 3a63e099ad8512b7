#include "tests/sim/simulation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"

namespace gleaner::sim {
namespace {

// Far more than any scenario needs.
constexpr uint64_t kMostEvents = 3'000'000;
constexpr Nanoseconds kLongest = 60'000 * kMillisecond;
constexpr size_t kMostSummers = 12;

}  // namespace

Simulation::Simulation(const Scenario& scenario, const kernels::Kernels* kernels, Report* report)
    : world_(scenario, report,
             [this](Direction direction, uint32_t worker, uint32_t summer, const wire::Header& header, Buffer payload) {
               if (direction == Direction::kToWorker) {
                 const bool is_result = header.type == wire::FrameType::kResult;
                 if (is_result && summer >= workers_.size()) summer_of(summer)->on_pulled();
                 workers_[worker]->deliver_answer(summer, header, payload);
               } else if (summer < workers_.size()) {
                 workers_[summer]->deliver_to_summer(worker, header, payload);
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
  world_.close = [this](uint32_t worker, uint32_t process) { workers_[worker]->lose(process); };
  for (uint32_t i = 0; i < scenario.job.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(i, kernels, &world_, &control_));
  }
  for (uint32_t i = 0; i < scenario.job.workers; ++i) {
    world_.events.after(world_.dice.between(0, 3 * kMillisecond), [this, i] { tick(i); });
    workers_[i]->begin();
  }
  for (uint32_t i = 0; i < scenario.job.summers; ++i) add_summer(0);
  // Once it has begun: before, a member that is lost ends the job.
  for (const FaultAt& fault : scenario.faults) {
    later(30 * kMillisecond + fault.time, [this, what = fault.what] { happen(what); });
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
  if (process < workers_.size() && workers_[process]->finished()) return false;
  if (world_.network.is_cut(worker, process)) return false;
  return process < workers_.size() || !summer_of(process)->is_gone();
}

// --- faults

void Simulation::happen(Fault fault) {
  if (control_.core().phase() != coordinator::Phase::kRunning) return;  // it can't be mended then
  switch (fault) {
    case Fault::kDisconnect:
      return disconnect(false);
    case Fault::kCut:
      return disconnect(true);
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
        summer->leave();
      }
      return;
    case Fault::kBandwidth:
      note(fault, pick_summer());
      return change_bandwidth();
    case Fault::kForget:
      note(fault, pick_summer());
      return control_.forget();
    case Fault::kUsurp:
      note(fault, pick_summer());
      return control_.usurp();
    case Fault::kStreamBreak:
      note(fault, pick_summer());
      return break_a_stream();
  }
}

// `summer`: whom it befalls, or any; null: there is none.
void Simulation::note(Fault fault, const CpuSummer* summer) {
  const coordinator::Core& core = control_.core();
  Moment moment = summer == nullptr ? Moment::kIdle : summer->summer().moment();
  if (core.phase() == coordinator::Phase::kRecovering || core.is_anybody_lost()) {
    moment = Moment::kRecovery;
  } else if (core.proposed_epoch() > 0) {
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

void Simulation::disconnect(bool cut) {
  const auto worker = static_cast<uint32_t>(world_.dice.below(workers_.size()));
  const auto process = static_cast<uint32_t>(world_.dice.below(workers_.size() + summers_.size()));
  if (worker == process || !world_.network.connected(worker, process)) return;
  ++world_.report->coverage.disconnects;
  note(cut ? Fault::kCut : Fault::kDisconnect, process < workers_.size() ? pick_summer() : summer_of(process));
  if (!cut) return workers_[worker]->lose(process);
  world_.report->trace(world_.events.now(), "worker ", worker, " is cut from process ", process);
  world_.network.set_cut(worker, process, true);
  later(world_.dice.between(5, 20) * kMillisecond, [this, worker, process] { workers_[worker]->lose(process); });
  // Between workers it heals, or their job could not go on.
  const bool long_one = process >= workers_.size() && world_.dice.chance(0.5);
  later((long_one ? 150 : 25) * kMillisecond,
        [this, worker, process] { world_.network.set_cut(worker, process, false); });
}

void Simulation::all_lose(uint32_t process, Nanoseconds least, Nanoseconds most) {
  for (const auto& worker : workers_) {
    later(world_.dice.between(least, most), [&worker, process] { worker->lose(process); });
  }
}

void Simulation::lose_summer(bool at_once) {
  CpuSummer* const summer = pick_summer();
  if (summer == nullptr) return;
  note(at_once ? Fault::kCrash : Fault::kFreeze, summer);
  const auto place = std::ranges::find_if(summers_, [summer](const auto& each) { return each.get() == summer; });
  const auto process = static_cast<uint32_t>(workers_.size() + static_cast<size_t>(place - summers_.begin()));
  world_.report->trace(world_.events.now(), "process ", process, at_once ? " crashes" : " freezes");
  if (at_once) {
    summer->crash();
    all_lose(process, 0, 3 * kMillisecond);
    if (world_.scenario.indexed) tell_of_ended_summer(process);
  } else {
    summer->freeze();
    all_lose(process, 5 * kMillisecond, 20 * kMillisecond);
  }
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
    // Nobody there: nothing to change.
    (void)core.set_bandwidth(worker ? coordinator::Role::kWorker : coordinator::Role::kSummer, index, bits, now,
                             actions);
  });
}

void Simulation::break_a_stream() {
  const uint64_t who = world_.dice.below(workers_.size() + summers_.size());
  if (who < workers_.size()) return workers_[who]->break_stream();
  if (!summers_[who - workers_.size()]->is_gone()) summers_[who - workers_.size()]->break_stream();
}

// As the operator does, which sees their pods.
void Simulation::tell_of_ended_workers() {
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i]->finished() && workers_[i]->stop()) all_lose(i, 0, 3 * kMillisecond);
  }
  if (control_.incarnations() != incarnations_) {
    incarnations_ = control_.incarnations();
    told_ended_.assign(told_ended_.size(), false);
  }
  if (!control_.is_there()) return;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i]->finished() || told_ended_[i]) continue;
    told_ended_[i] = true;
    control_.order([i](Control::Core& core, absl::Duration now, coordinator::Actions& actions) {
      core.on_ended(coordinator::Role::kWorker, i, absl::OkStatus(), now, actions);
    });
  }
}

void Simulation::tell_of_ended_summer(uint32_t process) {
  const auto index = static_cast<uint32_t>(process - workers_.size());
  later(world_.dice.between(0, 100 * kMillisecond), [this, index] {
    control_.order([index](Control::Core& core, absl::Duration now, coordinator::Actions& actions) {
      core.on_ended(coordinator::Role::kSummer, index, absl::UnavailableError("killed"), now, actions);
    });
  });
}

// --- the run

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
  absl::StrAppend(&text, "plan of epoch ", core.plan().epoch, ", proposed ", core.proposed_epoch());
  return text;
}

void Simulation::check_end() {
  for (const auto& worker : workers_) worker->check_end();
  world_.accumulated.check_end();
  for (const auto& summer : summers_) summer->summer().count();
  const coordinator::Changes& changes = control_.core().changes();
  Coverage& coverage = world_.report->coverage;
  coverage.plans += control_.core().plan().epoch;
  coverage.recovered += changes.recovered;
  coverage.moved_plans += changes.moved;
  coverage.given_up += changes.given_up;
  coverage.summers_lost += changes.lost;
  coverage.summers_came += changes.came;
  coverage.summers_left += changes.left;
  workers_.clear();
  summers_.clear();
  if (world_.pool.bytes_in_use() != 0) world_.report->fail(world_.pool.bytes_in_use(), " bytes of buffers leaked");
}

}  // namespace gleaner::sim
