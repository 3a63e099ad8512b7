#include "tests/protocol_sim/summer.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gleaner::sim {

std::string address_of(uint32_t number) { return absl::StrCat("10.0.0.1:", number + 1); }

uint32_t number_of(const std::string& address) {
  uint32_t number = 0;
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &number)) return UINT32_MAX;
  return number - 1;
}

Summer::Summer(uint32_t number, const kernels::Kernels* kernels, World* world)
    : number_(number), kernels_(kernels), world_(world) {}

void Summer::be(uint32_t member) {
  member_ = member;
  engine_ = std::make_unique<engine::Engine>(
      engine::Options{.job = kJob, .self = member, .memory_cap_bytes = world_->scenario.memory_cap_bytes}, kernels_,
      &world_->pool);
}

absl::Status Summer::prepare(std::shared_ptr<const plan::Plan> plan) {
  if (plan->epoch == engine_->epoch()) return absl::OkStatus();  // a frame of this epoch has already committed it
  const absl::Status status = engine_->prepare(plan);
  if (!status.ok() || !world_->dice.chance(0.1)) return status;
  engine_->discard(plan->epoch);
  return engine_->prepare(plan);
}

void Summer::commit(uint32_t epoch) {
  if (engine_->epoch() == epoch) ++world_->report->coverage.early_commits;
  const absl::Status status = engine_->commit(epoch, actions_);
  if (!status.ok()) world_->report->fail("process ", number_, " can't commit: ", status.ToString());
  send_all();
}

void Summer::deliver(uint32_t worker, const wire::Header& header, Buffer payload) {
  if (engine_ == nullptr) return;
  const absl::Status status = engine_->on_frame(worker, header, std::move(payload), actions_);
  if (actions_.has_summed) pulled_ = false;
  // A summer that has joined again as a new member knows nothing of its earlier connections.
  if (absl::IsFailedPrecondition(status) && engine_->epoch() == 0) return world_->close(worker, number_);
  if (!status.ok()) world_->report->fail("process ", number_, ": ", status.ToString());
  const uint64_t cap = world_->scenario.most_memory_bytes();
  if (cap != 0 && engine_->counters().memory_bytes > cap) {
    world_->report->fail("process ", number_, " holds ", engine_->counters().memory_bytes, " bytes, the cap is ", cap);
  }
  send_all();
}

void Summer::on_connected(uint32_t worker) {
  if (engine_ == nullptr) return;
  engine_->on_connected(worker, actions_);
  send_all();
}

void Summer::send_all() {
  for (engine::Send& send : actions_.sends) {
    world_->network.send(Direction::kToWorker, send.worker, number_, send.header, std::move(send.payload));
  }
  actions_.clear();
}

bool Summer::idle_without(uint32_t worker) const { return engine_ == nullptr || engine_->idle_without(worker); }

Moment Summer::moment() const {
  if (engine_ == nullptr) return Moment::kIdle;
  const engine::Counters counters = engine_->counters();
  if (counters.contributions > counters.sums * world_->scenario.job.workers) return Moment::kHalfPushed;
  if (counters.memory_bytes == 0) return Moment::kIdle;
  return pulled_ ? Moment::kHalfPulled : Moment::kSummed;
}

void Summer::count() const {
  if (engine_ == nullptr) return;
  const engine::Counters counters = engine_->counters();
  Coverage& coverage = world_->report->coverage;
  coverage.sums += counters.sums;
  coverage.resent += counters.resent;
  coverage.defers += counters.deferred;
  coverage.fenced += counters.fenced;
  coverage.takeovers += counters.takeovers;
  coverage.handed += counters.handed;
}

CpuSummer::CpuSummer(uint32_t number, double bits_per_second, const kernels::Kernels* kernels, World* world,
                     Control* control)
    : world_(world),
      number_(number),
      address_(address_of(number)),
      process_(&world->events),
      summer_(number, kernels, world),
      follower_(absl::StrCat("summer of process ", number),
                {.role = coordinator::Role::kSummer,
                 .index = world->scenario.indexed ? std::optional(number - world->scenario.job.workers) : std::nullopt,
                 .address = address_,
                 .bits_per_second = bits_per_second},
                &process_, world, control, this) {}

void CpuSummer::deliver(uint32_t worker, const wire::Header& header, const Buffer& payload) {
  process_.run([this, worker, header, payload] {
    if (!follower_.is_over()) summer_.deliver(worker, header, payload);
  });
}

void CpuSummer::on_connected(uint32_t worker) {
  process_.run([this, worker] {
    if (!follower_.is_over()) summer_.on_connected(worker);
  });
}

// A summer that leaves a job without a coordinator ends while others still need it.
void CpuSummer::on_over(const absl::Status&) {
  if (world_->coordinator_is_gone) world_->on_left_alone(number_);
}

void CpuSummer::crash() {
  process_.crash();
  follower_.vanish();
}

}  // namespace gleaner::sim
