#include "summation-service/engine/engine.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/extends.h"
#include "summation-service/engine/checks.h"
#include "summation-service/engine/sum.h"

namespace gleaner::engine {
namespace {

// A partition's life: results of the steps before `step` are made, the last of them perhaps still retained.
struct PartitionState {
  uint64_t step = 0;
  Sum* gathering = nullptr;  // of `step`, once the first contribution is in
  Sum* retained = nullptr;   // of `step` - 1, until every worker has it
};

wire::PartitionKey key_at(const Buffer& payload, size_t index) {
  wire::PartitionKey key;
  std::memcpy(&key, payload.bytes().data() + index * sizeof(key), sizeof(key));
  return key;
}

const char* verb(ReduceOp op) { return op == ReduceOp::kAverage ? "averages" : "sums"; }

}  // namespace

struct Engine::Core {
  Core(const Options& options, const kernels::Kernels* kernels, BufferPool* pool)
      : options_(options), kernels_(kernels), pool_(pool) {}

  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  absl::Status commit(uint32_t epoch);
  absl::Status on_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);

  // Checks that change nothing.
  absl::Status check_follows(const plan::Plan& plan) const;
  absl::Status check_peer(const plan::Plan& plan, uint32_t worker, const wire::Header& header) const;
  absl::Status check_turn(const plan::Plan& plan, uint32_t worker, const wire::Header& header) const;
  absl::Status check_acks(const plan::Plan& plan, uint32_t worker, const wire::Header& header,
                          const Buffer& payload) const;

  // Steps that can't fail any more.
  void come_into_force();
  void push(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  void acknowledge(uint32_t worker, const wire::PartitionKey& key);
  void release_retained(PartitionState& state, uint32_t worker, uint32_t bytes);
  void make_sum(PartitionState& state, const wire::Header& header, uint32_t bytes, Actions& actions);
  void send(uint32_t worker, wire::FrameType type, const wire::Header& cause, Buffer payload, Actions& actions) const;

  const Options options_;
  const kernels::Kernels* const kernels_;
  BufferPool* const pool_;
  std::shared_ptr<const plan::Plan> plan_;
  std::shared_ptr<const plan::Plan> prepared_;
  std::vector<PartitionState> partitions_;  // as in the plan; those of other owners stay as they are here
  SumPool sums_;
  std::vector<const std::byte*> sources_;  // scratch of make_sum()
  Counters counters_;
};

// --- plan change

absl::Status Engine::Core::check_follows(const plan::Plan& plan) const {
  if (plan_ == nullptr || plan::extends(plan, *plan_) || counters_.contributions == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the plan of epoch ", plan.epoch,
                                                    " does more than add tensors to that of epoch ", plan_->epoch,
                                                    ", and this summer has begun to sum: it can't follow"));
}

absl::Status Engine::Core::prepare(std::shared_ptr<const plan::Plan> plan) {
  const uint32_t in_force = plan_ == nullptr ? 0 : plan_->epoch;
  if (plan->epoch <= in_force) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected a plan above epoch ", in_force, ", which is in force, got epoch ", plan->epoch));
  }
  GLN_RETURN_IF_ERROR(check_follows(*plan));
  uint64_t largest = 0;
  for (const plan::Partition& partition : plan->partitions) {
    if (partition.owner == options_.self) largest = std::max<uint64_t>(largest, partition.bytes);
  }
  const uint64_t needed = largest * (plan->workers + uint64_t{1});
  if (options_.memory_cap_bytes != 0 && needed > options_.memory_cap_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a partition of ", largest, " bytes and ", plan->workers, " workers needs ", needed,
        " bytes, but the memory cap is ", options_.memory_cap_bytes, ": raise the cap or make partitions smaller"));
  }
  if (partitions_.size() < plan->partitions.size()) partitions_.resize(plan->partitions.size());
  prepared_ = std::move(plan);
  return absl::OkStatus();
}

absl::Status Engine::Core::commit(uint32_t epoch) {
  if (plan_ != nullptr && plan_->epoch == epoch) return absl::OkStatus();  // a frame of this epoch was faster
  if (prepared_ == nullptr || prepared_->epoch != epoch) {
    return absl::FailedPreconditionError(absl::StrCat("asked to commit epoch ", epoch, ", but the prepared epoch is ",
                                                      prepared_ == nullptr ? 0 : prepared_->epoch));
  }
  GLN_RETURN_IF_ERROR(check_follows(*prepared_));
  come_into_force();
  return absl::OkStatus();
}

void Engine::Core::come_into_force() {
  if (plan_ == nullptr || plan_->workers != prepared_->workers) {
    sums_.reset(prepared_->workers);
    sources_.resize(prepared_->workers);
  }
  plan_ = std::move(prepared_);
  prepared_ = nullptr;
}

// --- frames

absl::Status Engine::Core::on_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const bool commits = prepared_ != nullptr && header.epoch == prepared_->epoch;
  const plan::Plan* plan = commits ? prepared_.get() : plan_.get();
  if (plan == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("member ", worker, " sent a frame of epoch ", header.epoch, " before any plan was prepared"));
  }
  GLN_RETURN_IF_ERROR(check_peer(*plan, worker, header));
  if (header.epoch < plan->fence) {
    ++counters_.fenced;
    return absl::OkStatus();
  }
  if (commits) GLN_RETURN_IF_ERROR(check_follows(*plan));
  switch (header.type) {
    case wire::FrameType::kPush:
      GLN_RETURN_IF_ERROR(check_push(*plan, options_.self, worker, header, payload));
      GLN_RETURN_IF_ERROR(check_turn(*plan, worker, header));
      if (commits) come_into_force();
      push(worker, header, std::move(payload), actions);
      return absl::OkStatus();
    case wire::FrameType::kAck:
      GLN_RETURN_IF_ERROR(check_acks(*plan, worker, header, payload));
      if (commits) come_into_force();
      for (size_t i = 0; i < payload.size() / sizeof(wire::PartitionKey); ++i) acknowledge(worker, key_at(payload, i));
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("expected PUSH or ACK from ", plan->member_name(worker), ", got ", wire::name_of(header.type)));
  }
}

absl::Status Engine::Core::check_peer(const plan::Plan& plan, uint32_t worker, const wire::Header& header) const {
  if (worker >= plan.workers || header.sender != worker || header.job != options_.job) {
    return absl::InvalidArgumentError(absl::StrCat("expected a frame of job ", options_.job, " from member ", worker,
                                                   ", one of ", plan.workers, " workers; got one of job ", header.job,
                                                   " from member ", header.sender));
  }
  if (header.epoch > plan.epoch) {
    return absl::FailedPreconditionError(absl::StrCat(plan.member_name(worker), " sent a frame of epoch ", header.epoch,
                                                      ", but the latest plan known here is of epoch ", plan.epoch));
  }
  return absl::OkStatus();
}

// That a push comes neither too early nor with another op than what is already here.
absl::Status Engine::Core::check_turn(const plan::Plan& plan, uint32_t worker, const wire::Header& header) const {
  const PartitionState& state = partitions_[partition_index(plan, header.tensor, header.partition)];
  const wire::PartitionKey key{header.step, header.tensor, header.partition};
  if (header.step > state.step) {
    return absl::FailedPreconditionError(absl::StrCat(plan.member_name(worker), " pushed ", describe(plan, key),
                                                      ", but step ", state.step, " is not summed yet"));
  }
  const Sum* sum = header.step == state.step ? state.gathering : nullptr;
  if (sum == nullptr || sum->op == header.op) return absl::OkStatus();
  uint32_t other = 0;
  while (!sum->has_contribution(other)) ++other;
  return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " ", verb(header.op), " ",
                                                 describe(plan, key), ", but ", plan.member_name(other), " ",
                                                 verb(sum->op), " it: all workers must use the same op"));
}

absl::Status Engine::Core::check_acks(const plan::Plan& plan, uint32_t worker, const wire::Header& header,
                                      const Buffer& payload) const {
  GLN_RETURN_IF_ERROR(check_ack_size(plan, worker, header, payload));
  for (size_t i = 0; i < payload.size() / sizeof(wire::PartitionKey); ++i) {
    const wire::PartitionKey key = key_at(payload, i);
    GLN_RETURN_IF_ERROR(check_key(plan, options_.self, worker, key));
    if (key.step >= partitions_[partition_index(plan, key.tensor, key.partition)].step) {
      return absl::FailedPreconditionError(
          absl::StrCat(plan.member_name(worker), " acknowledged ", describe(plan, key), ", which is not summed yet"));
    }
  }
  return absl::OkStatus();
}

void Engine::Core::push(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const uint32_t index = partition_index(*plan_, header.tensor, header.partition);
  const uint32_t bytes = plan_->partitions[index].bytes;
  PartitionState& state = partitions_[index];
  if (header.step < state.step) {
    ++counters_.duplicates;
    const bool lost_its_result =
        header.step + 1 == state.step && state.retained != nullptr && !state.retained->has_acknowledged(worker);
    if (!lost_its_result) return;
    ++counters_.resent;
    send(worker, wire::FrameType::kResult, header, state.retained->result, actions);
    return;
  }
  if (state.gathering != nullptr && state.gathering->has_contribution(worker)) {
    ++counters_.duplicates;
    return;
  }
  // Even when this push is deferred below: it says that the worker has the step before, and may free memory.
  release_retained(state, worker, bytes);
  if (state.gathering == nullptr) {
    const uint64_t needed = bytes * (plan_->workers + uint64_t{1});
    if (options_.memory_cap_bytes != 0 && counters_.memory_bytes + needed > options_.memory_cap_bytes) {
      ++counters_.deferred;
      send(worker, wire::FrameType::kDefer, header, {}, actions);
      return;
    }
    counters_.memory_bytes += needed;
    state.gathering = sums_.take();
    state.gathering->op = header.op;
  }
  ++counters_.contributions;
  state.gathering->contributions[worker] = std::move(payload);
  if (--state.gathering->pending == 0) make_sum(state, header, bytes, actions);
}

void Engine::Core::make_sum(PartitionState& state, const wire::Header& header, uint32_t bytes, Actions& actions) {
  Sum& sum = *state.gathering;
  sum.result = pool_->take(bytes);
  for (uint32_t i = 0; i < plan_->workers; ++i) sources_[i] = sum.contributions[i].bytes().data();
  const uint32_t divisor = sum.op == ReduceOp::kAverage ? plan_->ranks() : 1;
  kernels_->sum(header.data_type, sources_, sum.result.bytes().data(), bytes / size_of(header.data_type), divisor);
  for (Buffer& contribution : sum.contributions) contribution = {};
  std::fill(sum.acknowledged.begin(), sum.acknowledged.end(), 0);
  sum.pending = plan_->workers;
  counters_.memory_bytes -= uint64_t{bytes} * plan_->workers;
  ++counters_.sums;
  counters_.summed_bytes += bytes;
  // Every worker has pushed this step, so every worker had the one before: nothing is retained.
  state.retained = std::exchange(state.gathering, nullptr);
  ++state.step;
  const uint32_t crc = wire::crc32c(sum.result.bytes());
  for (uint32_t i = 0; i < plan_->workers; ++i) {
    send(i, wire::FrameType::kResult, header, sum.result, actions);
    actions.back().header.payload_crc = crc;
  }
}

void Engine::Core::acknowledge(uint32_t worker, const wire::PartitionKey& key) {
  const uint32_t index = partition_index(*plan_, key.tensor, key.partition);
  PartitionState& state = partitions_[index];
  if (key.step + 1 == state.step) release_retained(state, worker, plan_->partitions[index].bytes);
}

void Engine::Core::release_retained(PartitionState& state, uint32_t worker, uint32_t bytes) {
  if (state.retained == nullptr || state.retained->has_acknowledged(worker)) return;
  state.retained->acknowledge(worker);
  if (state.retained->pending > 0) return;
  sums_.give_back(std::exchange(state.retained, nullptr));
  counters_.memory_bytes -= bytes;
}

void Engine::Core::send(uint32_t worker, wire::FrameType type, const wire::Header& cause, Buffer payload,
                        Actions& actions) const {
  wire::Header header;
  header.type = type;
  header.data_type = cause.data_type;
  header.op = cause.op;
  header.job = options_.job;
  header.epoch = plan_->epoch;
  header.sender = options_.self;
  header.tensor = cause.tensor;
  header.partition = cause.partition;
  header.step = cause.step;
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  actions.push_back({worker, header, std::move(payload)});
}

// --- public surface

Engine::Engine(const Options& options, const kernels::Kernels* kernels, BufferPool* pool)
    : core_(std::make_unique<Core>(options, kernels, pool)) {}
Engine::~Engine() = default;

absl::Status Engine::prepare(std::shared_ptr<const plan::Plan> plan) { return core_->prepare(std::move(plan)); }
absl::Status Engine::commit(uint32_t epoch) { return core_->commit(epoch); }
void Engine::discard(uint32_t epoch) {
  if (core_->prepared_ != nullptr && core_->prepared_->epoch == epoch) core_->prepared_ = nullptr;
}
absl::Status Engine::on_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  return core_->on_frame(worker, header, std::move(payload), actions);
}
uint32_t Engine::epoch() const { return core_->plan_ == nullptr ? 0 : core_->plan_->epoch; }
const Counters& Engine::counters() const { return core_->counters_; }

}  // namespace gleaner::engine
