#include "summation-service/engine/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"
#include "summation-service/engine/core.h"

namespace gleaner::engine {

// --- plan change

absl::Status Engine::Core::prepare(std::shared_ptr<const plan::Plan> plan) {
  if (plan_ != nullptr) GLN_RETURN_IF_ERROR(plan::check_successor(*plan, *plan_));
  uint64_t largest = 0;
  for (const plan::Partition& partition : plan->partitions) {
    if (partition.owner == options_.self) largest = std::max<uint64_t>(largest, partition.bytes);
  }
  const uint64_t needed = block_size(largest) * (plan->workers + uint64_t{1});
  if (options_.memory_cap_bytes != 0 && needed > options_.memory_cap_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a partition of ", largest, " bytes and ", plan->workers, " workers needs ", needed,
                     " bytes of memory, but the memory cap is ", options_.memory_cap_bytes,
                     ": raise the cap or make partitions smaller"));
  }
  prepared_ = std::move(plan);
  return absl::OkStatus();
}

absl::Status Engine::Core::commit(uint32_t epoch, Actions& actions) {
  if (plan_ != nullptr && plan_->epoch == epoch) return absl::OkStatus();  // a frame of this epoch was faster
  if (prepared_ == nullptr || prepared_->epoch != epoch) {
    return absl::FailedPreconditionError(absl::StrCat("asked to commit epoch ", epoch, ", but the prepared epoch is ",
                                                      prepared_ == nullptr ? 0 : prepared_->epoch));
  }
  come_into_force(actions);
  return absl::OkStatus();
}

void Engine::Core::come_into_force(Actions& actions) {
  const uint32_t before = plan_ == nullptr ? 0 : plan_->epoch;
  if (plan_ == nullptr) {
    sums_.reset(prepared_->workers);
    sources_.resize(prepared_->workers);
  }
  for (uint32_t i = 0; i < partitions_.size(); ++i) {
    if (!plan::has_moved(prepared_->partitions[i], before)) continue;
    if (partitions_[i].gathering != nullptr) GLN_RARE("engine: a partition is taken away between contributions");
    if (partitions_[i].takeover != nullptr) GLN_RARE("engine: a partition is taken away during its takeover");
    forget(i);
  }
  plan_ = std::move(prepared_);
  prepared_ = nullptr;
  partitions_.resize(plan_->partitions.size());
  for (uint32_t i = 0; i < partitions_.size(); ++i) {
    const plan::Partition& partition = plan_->partitions[i];
    const bool is_new = partition.since == plan_->tensors[partition.tensor].since;  // everybody is at its first step
    if (partition.owner != options_.self) continue;
    if (plan_->tensors[partition.tensor].accumulates) {
      if (!accumulates(i)) begin_accumulation(i, !is_new);
      continue;
    }
    if (is_new || !plan::has_moved(partition, before)) continue;
    partitions_[i].takeover = std::make_unique<Takeover>(plan_->workers);
  }
  actions.reserve(actions.size() + plan_->workers);
  for (uint32_t worker = 0; worker < plan_->workers; ++worker) tell_plan(worker, actions);
}

void Engine::Core::tell_plan(uint32_t worker, Actions& actions) const {
  if (plan_ == nullptr || GLN_MUTATION("owners don't say which plan they follow")) return;
  actions.push_back({worker, header_of(wire::FrameType::kCommitted, {}), {}});
}

// It goes to another owner, or comes back from one.
void Engine::Core::forget(uint32_t index) {
  if (partitions_[index].gathering != nullptr) drop_gathering(index);
  if (partitions_[index].retained != nullptr) drop_retained(index);
  if (accumulates(index)) forget_accumulation(index);
  partitions_[index] = {};
}

// --- contributions

void Engine::Core::push(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const wire::PartitionKey key = key_of(header);
  const uint32_t index = index_of(key);
  PartitionState& state = partitions_[index];
  // A push says what an acknowledgement does, also one that is deferred below: it may free memory.
  if (state.takeover == nullptr || !state.takeover->has_heard(worker)) acknowledge(worker, key, actions);
  if (key.step < state.step) {
    ++counters_.duplicates;
    const bool lost_its_result = key.step + 1 == state.step && state.retained != nullptr &&
                                 !state.retained->result.empty() && !state.retained->has_acknowledged(worker);
    if (!lost_its_result) return;
    GLN_RARE("engine: a result is sent again");
    ++counters_.resent;
    send_result(worker, index, 0, actions);
    return;
  }
  if (state.gathering != nullptr && state.gathering->has_contribution(worker)) {
    GLN_RARE("engine: a contribution comes twice");
    ++counters_.duplicates;
    if (!GLN_MUTATION("a contribution counts twice")) return;
  }
  if (state.gathering == nullptr) {
    const uint64_t needed = memory_of(index) * (plan_->workers + uint64_t{1});
    const bool full = options_.memory_cap_bytes != 0 && counters_.memory_bytes + needed > options_.memory_cap_bytes;
    if (full || GLN_INJECT("engine: a push is put off though there is room")) {
      ++counters_.deferred;
      actions.push_back({worker, header_of(wire::FrameType::kDefer, key), {}});
      return;
    }
    counters_.memory_bytes += needed;
    state.gathering = sums_.take();
    state.gathering->op = header.op;
  }
  ++counters_.contributions;
  state.gathering->contributions[worker] = std::move(payload);
  if (--state.gathering->pending == 0) make_sum(index, header, actions);
}

void Engine::Core::make_sum(uint32_t index, const wire::Header& header, Actions& actions) {
  PartitionState& state = partitions_[index];
  Sum& sum = *state.gathering;
  const uint32_t bytes = bytes_of(index);
  sum.result = pool_->take(bytes);
  for (uint32_t i = 0; i < plan_->workers; ++i) sources_[i] = sum.contributions[i].bytes().data();
  const uint32_t divisor = sum.op == ReduceOp::kAverage ? plan_->ranks() : 1;
  kernels_->sum(header.data_type, sources_, sum.result.bytes().data(), bytes / size_of(header.data_type), divisor);
  for (Buffer& contribution : sum.contributions) contribution = {};
  std::fill(sum.acknowledged.begin(), sum.acknowledged.end(), 0);
  sum.pending = plan_->workers;
  sum.number = releases_.add();
  counters_.memory_bytes -= memory_of(index) * plan_->workers;
  ++counters_.sums;
  counters_.summed_bytes += bytes;
  // Every worker has pushed this step, so every worker had the one before: nothing is retained.
  state.retained = std::exchange(state.gathering, nullptr);
  ++state.step;
  const uint32_t crc = wire::crc32c(sum.result.bytes());
  for (uint32_t i = 0; i < plan_->workers; ++i) send_result(i, index, crc, actions);
}

void Engine::Core::drop_gathering(uint32_t index) {
  Sum& sum = *partitions_[index].gathering;
  for (Buffer& contribution : sum.contributions) contribution = {};
  sums_.give_back(std::exchange(partitions_[index].gathering, nullptr));
  counters_.memory_bytes -= memory_of(index) * (plan_->workers + uint64_t{1});
}

// --- how far workers are

void Engine::Core::acknowledge(uint32_t worker, const wire::PartitionKey& key, Actions& actions) {
  const uint32_t index = index_of(key);
  const PartitionState& state = partitions_[index];
  if (accumulates(index)) return hear_version(worker, index, key.step, actions);
  if (state.takeover != nullptr) return hear(worker, index, key.step, actions);
  if (key.step == state.step) release_retained(index, worker);
}

// During a takeover.
void Engine::Core::hear(uint32_t worker, uint32_t index, uint64_t next, Actions& actions) {
  PartitionState& state = partitions_[index];
  Takeover& takeover = *state.takeover;
  if (takeover.has_heard(worker)) {
    // It has connected again: what it was asked for may be lost.
    if (takeover.asked() == worker) {
      GLN_RARE("engine: a result is asked for again");
      fetch(index, actions);
    }
    return;
  }
  const bool leads = takeover.hear(worker, next, state.step);
  if (leads && state.gathering != nullptr) {  // of a step that an earlier owner has done
    GLN_RARE("engine: contributions to a finished step are dropped");
    drop_gathering(index);
  }
  if (leads) state.step = next;
  if (!takeover.complete() && !GLN_MUTATION("a takeover does not wait for the last worker")) return;
  ++counters_.takeovers;
  if (takeover.behind() == 0) {
    state.takeover = nullptr;
    return;
  }
  counters_.handed_bytes += memory_of(index);
  state.retained = sums_.take();
  state.retained->handed = true;
  state.retained->acknowledged = takeover.ahead();
  state.retained->pending = takeover.behind();
  fetch(index, actions);
}

// Asks one of those who have the last result for it.
void Engine::Core::fetch(uint32_t index, Actions& actions) {
  Takeover& takeover = *partitions_[index].takeover;
  takeover.ask(takeover.giver());
  const wire::PartitionKey key = key_of_step(index, partitions_[index].step - 1);
  actions.push_back({takeover.asked(), header_of(wire::FrameType::kFetch, key), {}});
}

void Engine::Core::release_retained(uint32_t index, uint32_t worker) {
  Sum* const sum = partitions_[index].retained;
  if (sum == nullptr || sum->has_acknowledged(worker)) return;
  sum->acknowledge(worker);
  if (sum->pending == 0 || GLN_MUTATION("a result is let go with its first acknowledgement")) drop_retained(index);
}

void Engine::Core::drop_retained(uint32_t index) {
  Sum* const sum = std::exchange(partitions_[index].retained, nullptr);
  if (!sum->result.empty()) releases_.release(sum->number);
  (sum->handed ? counters_.handed_bytes : counters_.memory_bytes) -= memory_of(index);
  sums_.give_back(sum);
}

// --- answers

// `crc`: of the result, 0 if it is not known yet.
void Engine::Core::send_result(uint32_t worker, uint32_t index, uint32_t crc, Actions& actions) const {
  const Sum& sum = *partitions_[index].retained;
  wire::Header header = header_of(wire::FrameType::kResult, key_of_step(index, partitions_[index].step - 1));
  header.data_type = plan_->tensors[header.tensor].type;
  header.op = sum.op;
  header.sequence = sum.number;
  header.released = releases_.first_unreleased();
  header.payload_bytes = static_cast<uint32_t>(sum.result.size());
  header.payload_crc = crc;
  actions.push_back({worker, header, sum.result});
}

wire::Header Engine::Core::header_of(wire::FrameType type, const wire::PartitionKey& key) const {
  wire::Header header;
  header.type = type;
  header.job = options_.job;
  header.epoch = plan_->epoch;
  header.sender = options_.self;
  header.tensor = key.tensor;
  header.partition = key.partition;
  header.step = key.step;
  return header;
}

// --- public surface

Engine::Engine(const Options& options, const kernels::Kernels* kernels, BufferPool* pool)
    : core_(std::make_unique<Core>(options, kernels, pool)) {}
Engine::~Engine() = default;

absl::Status Engine::prepare(std::shared_ptr<const plan::Plan> plan) { return core_->prepare(std::move(plan)); }
absl::Status Engine::commit(uint32_t epoch, Actions& actions) { return core_->commit(epoch, actions); }
void Engine::discard(uint32_t epoch) {
  if (core_->prepared_ != nullptr && core_->prepared_->epoch == epoch) core_->prepared_ = nullptr;
}
void Engine::on_connected(uint32_t worker, Actions& actions) const { core_->tell_plan(worker, actions); }
absl::Status Engine::on_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  return core_->on_frame(worker, header, std::move(payload), actions);
}
uint32_t Engine::epoch() const { return core_->plan_ == nullptr ? 0 : core_->plan_->epoch; }
const Counters& Engine::counters() const { return core_->counters_; }
bool Engine::idle() const { return core_->counters_.memory_bytes + core_->counters_.handed_bytes == 0; }
bool Engine::idle_without(uint32_t worker) const {
  if (idle()) return true;
  return std::none_of(core_->partitions_.begin(), core_->partitions_.end(), [worker](const PartitionState& state) {
    return state.retained != nullptr || (state.gathering != nullptr && state.gathering->has_contribution(worker));
  });
}

}  // namespace gleaner::engine
