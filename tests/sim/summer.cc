#include "tests/sim/summer.h"

#include <utility>

namespace gleaner::sim {

Summer::Summer(uint32_t member, const kernels::Kernels* kernels, World* world)
    : member_(member),
      world_(world),
      engine_({.job = kJob, .self = member, .memory_cap_bytes = world->scenario.memory_cap_bytes}, kernels,
              &world->pool) {}

void Summer::prepare(std::shared_ptr<const plan::Plan> plan) {
  absl::Status status = engine_.prepare(plan);
  if (status.ok() && world_->dice.chance(0.2)) {
    engine_.discard(plan->epoch);
    status = engine_.prepare(plan);
  }
  if (!status.ok()) world_->report->fail("member ", member_, " can't prepare: ", status.ToString());
}

void Summer::commit(uint32_t epoch) {
  if (engine_.epoch() == epoch) ++world_->report->coverage.early_commits;
  const absl::Status status = engine_.commit(epoch);
  if (!status.ok()) world_->report->fail("member ", member_, " can't commit: ", status.ToString());
}

void Summer::deliver(uint32_t worker, const wire::Header& header, Buffer payload) {
  const absl::Status status = engine_.on_frame(worker, header, std::move(payload), actions_);
  if (!status.ok()) world_->report->fail("member ", member_, ": ", status.ToString());
  const uint64_t cap = world_->scenario.memory_cap_bytes;
  if (cap != 0 && engine_.counters().memory_bytes > cap) {
    world_->report->fail("member ", member_, " holds ", engine_.counters().memory_bytes, " bytes, the cap is ", cap);
  }
  for (engine::Send& send : actions_) {
    world_->network.send(Direction::kToWorker, send.worker, member_, send.header, std::move(send.payload));
  }
  actions_.clear();
}

void Summer::check_end() const {
  const plan::Plan& plan = world_->scenario.last_plan();
  uint64_t sums = 0, bytes = 0;
  for (const plan::Partition& partition : plan.partitions) {
    if (partition.owner != member_) continue;
    sums += world_->scenario.steps;
    bytes += uint64_t{partition.bytes} * world_->scenario.steps;
  }
  const engine::Counters& counters = engine_.counters();
  if (counters.sums != sums || counters.summed_bytes != bytes || counters.contributions != sums * plan.workers) {
    world_->report->fail("member ", member_, " made ", counters.sums, " sums of ", counters.contributions,
                         " contributions and ", counters.summed_bytes, " bytes; expected ", sums, " of ",
                         sums * plan.workers, " and ", bytes);
  }
  if (counters.memory_bytes != 0)
    world_->report->fail("member ", member_, " retains ", counters.memory_bytes, " bytes");
  Coverage& coverage = world_->report->coverage;
  coverage.sums += counters.sums;
  coverage.resent += counters.resent;
  coverage.defers += counters.deferred;
}

}  // namespace gleaner::sim
