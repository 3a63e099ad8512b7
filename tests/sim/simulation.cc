#include "tests/sim/simulation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"

namespace gleaner::sim {
namespace {

// Far more than any scenario needs.
constexpr uint64_t kMostEvents = 1'000'000;
constexpr Nanoseconds kLongest = 60'000 * kMillisecond;

}  // namespace

Simulation::Simulation(const Scenario& scenario, const kernels::Kernels* kernels, Report* report)
    : world_(scenario, report,
             [this](Direction direction, uint32_t worker, uint32_t owner, const wire::Header& header, Buffer payload) {
               if (direction == Direction::kToOwner) {
                 summers_[owner]->deliver(worker, header, std::move(payload));
               } else {
                 workers_[worker]->deliver(owner, header, std::move(payload));
               }
             }) {
  const plan::Plan& plan = scenario.last_plan();
  for (uint32_t i = 0; i < plan.members.size(); ++i) {
    summers_.push_back(std::make_unique<Summer>(i, kernels, &world_));
  }
  for (uint32_t i = 0; i < plan.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(i, &world_));
    world_.events.after(soon(), [this, i] { tick(i); });
  }
  for (uint32_t i = 0; i < scenario.disconnects; ++i) {
    ++pending_;
    world_.events.after(world_.dice.between(0, scenario.fault_time), [this] { disconnect_somebody(); });
  }
  pending_ += static_cast<uint32_t>(scenario.plans.size());
  prepare_plan(0);
}

// As the coordinator does it: all prepare, then all commit, each when the message reaches it; then the next.
void Simulation::prepare_plan(size_t index) {
  const auto plan = world_.scenario.plans[index];
  Nanoseconds last = 0;
  for (auto& summer : summers_) {
    const Nanoseconds delay = soon();
    last = std::max(last, delay);
    world_.events.after(delay, [&summer, plan] { summer->prepare(plan); });
  }
  world_.events.after(last + 1, [this, index] { commit_plan(index); });
}

void Simulation::commit_plan(size_t index) {
  const auto plan = world_.scenario.plans[index];
  if (index > 0) ++world_.report->coverage.extensions;
  Nanoseconds last = 0;
  const auto later = [&](auto event) {
    const Nanoseconds delay = soon();
    last = std::max(last, delay);
    world_.events.after(delay, event);
  };
  for (auto& summer : summers_) later([&summer, plan] { summer->commit(plan->epoch); });
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    later([this, i, plan, index] {
      workers_[i]->apply(plan);
      if (index > 0) return;
      for (uint32_t owner = 0; owner < summers_.size(); ++owner) {
        world_.events.after(soon(), [this, i, owner] { connect(i, owner); });
      }
    });
  }
  world_.events.after(last + 1, [this, index] {
    --pending_;
    if (index + 1 == world_.scenario.plans.size()) return;
    world_.events.after(world_.scenario.plan_times[index + 1], [this, index] { prepare_plan(index + 1); });
  });
}

void Simulation::connect(uint32_t worker, uint32_t owner) {
  world_.report->trace(world_.events.now(), "worker ", worker, " connected to member ", owner);
  world_.network.connect(worker, owner);
  workers_[worker]->connected(owner);
}

void Simulation::disconnect_somebody() {
  --pending_;
  const auto worker = static_cast<uint32_t>(world_.dice.below(workers_.size()));
  const auto owner = static_cast<uint32_t>(world_.dice.below(summers_.size()));
  if (worker == owner || !world_.network.connected(worker, owner)) return;
  world_.report->trace(world_.events.now(), "worker ", worker, " lost member ", owner);
  ++world_.report->coverage.disconnects;
  world_.network.disconnect(worker, owner);
  workers_[worker]->disconnected(owner);
  ++pending_;
  world_.events.after(world_.dice.between(0, 5 * kMillisecond), [this, worker, owner] {
    --pending_;
    connect(worker, owner);
  });
}

void Simulation::tick(uint32_t worker) {
  workers_[worker]->tick();
  if (!over_) world_.events.after(world_.scenario.tick, [this, worker] { tick(worker); });
}

bool Simulation::finished() const {
  return pending_ == 0 && world_.network.in_flight() == 0 &&
         std::ranges::all_of(workers_, [](const auto& worker) { return worker->finished(); });
}

void Simulation::run() {
  while (!world_.report->failure() && world_.events.step()) {
    if (!over_) over_ = finished();
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
  for (size_t i = 0; i < workers_.size(); ++i) {
    absl::StrAppend(&text, "worker ", i, workers_[i]->finished() ? " finished" : " waits for members ",
                    absl::StrJoin(workers_[i]->session().waiting_for(), ","), "; ");
  }
  return text;
}

void Simulation::check_end() {
  const plan::Plan& plan = world_.scenario.last_plan();
  for (const auto& summer : summers_) summer->check_end();
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    const session::Counters& counters = workers_[i]->session().counters();
    if (counters.results != plan.partitions.size() * world_.scenario.steps || counters.outstanding_bytes != 0) {
      world_.report->fail("worker ", i, " had ", counters.results, " results and has ", counters.outstanding_bytes,
                          " bytes outstanding; expected ", plan.partitions.size() * world_.scenario.steps, " and none");
    }
    Coverage& coverage = world_.report->coverage;
    coverage.repeated += counters.repeated_pushes;
    coverage.late_results += counters.duplicate_results;
    coverage.stalls += counters.stalls;
  }
  if (world_.pool.bytes_in_use() != 0) world_.report->fail(world_.pool.bytes_in_use(), " bytes of buffers leaked");
}

}  // namespace gleaner::sim
