#include "summation-service/engine/engine.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"
#include "summation-service/engine/checks.h"

namespace gleaner::engine {
namespace {

wire::PartitionKey key_at(const Buffer& payload, size_t index) {
  wire::PartitionKey key;
  std::memcpy(&key, payload.bytes().data() + index * sizeof(key), sizeof(key));
  return key;
}

}  // namespace

Engine::Engine(const Options& options, const kernels::Kernels* kernels, BufferPool* pool)
    : identity_{options.job, options.self},
      pool_(pool),
      plans_(identity_),
      memory_(options.memory_cap_bytes),
      sums_(identity_, kernels, pool, &memory_, &releases_),
      running_sums_(identity_, kernels, pool, &memory_, &releases_) {}

absl::Status Engine::prepare(std::shared_ptr<const plan::Plan> plan) {
  GLN_RETURN_IF_ERROR(plans_.check_successor(*plan));
  GLN_RETURN_IF_ERROR(check_memory(*plan, identity_.self, memory_));
  plans_.prepare(std::move(plan));
  return absl::OkStatus();
}

absl::Status Engine::commit(uint32_t epoch, Actions& actions) {
  // A frame of this epoch has committed the plan already.
  if (plans_.in_force() != nullptr && plans_.epoch() == epoch) return absl::OkStatus();
  if (!plans_.commits(epoch)) {
    return absl::FailedPreconditionError(
        absl::StrCat("asked to commit epoch ", epoch, ", but the prepared epoch is ", plans_.prepared_epoch()));
  }
  bring_into_force(actions);
  return absl::OkStatus();
}

// Brings the prepared plan into force and sends kCommitted to every worker.
void Engine::bring_into_force(Actions& actions) {
  plans_.commit();
  const std::shared_ptr<const plan::Plan>& plan = plans_.in_force();
  sums_.follow(plan);
  running_sums_.follow(plan);
  actions.sends.reserve(actions.sends.size() + plan->workers);
  for (uint32_t worker = 0; worker < plan->workers; ++worker) tell_plan(worker, actions);
}

void Engine::tell_plan(uint32_t worker, Actions& actions) const {
  if (plans_.in_force() == nullptr || GLN_MUTATION("owners don't say which plan they follow")) return;
  actions.sends.push_back({worker, make_header(identity_, plans_.epoch(), wire::FrameType::kCommitted, {}), {}});
}

absl::Status Engine::on_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  absl::Status status = take_frame(worker, header, std::move(payload), actions);
  if (absl::IsInvalidArgument(status)) refuse(worker, header, status, actions);
  return status;
}

// Sends the reason in a frame. The status of a closed connection may be lost, and the worker would then connect again.
void Engine::refuse(uint32_t worker, const wire::Header& header, const absl::Status& why, Actions& actions) const {
  const absl::string_view text = why.message().substr(0, wire::kMaxHandshakePayload);
  Buffer payload = pool_->take(text.size());
  std::memcpy(payload.bytes().data(), text.data(), text.size());
  wire::Header refusal = make_header(identity_, plans_.epoch(), wire::FrameType::kRefuse, key_of(header));
  refusal.payload_bytes = static_cast<uint32_t>(payload.size());
  actions.sends.push_back({worker, refusal, std::move(payload)});
}

absl::Status Engine::take_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  GLN_RETURN_IF_ERROR(plans_.check_frame(worker, header));
  if (plans_.commits(header.epoch)) {
    GLN_RARE("engine: a frame commits the plan");
    bring_into_force(actions);
  }
  switch (header.type) {
    case wire::FrameType::kPush:
    case wire::FrameType::kHand:
      return on_elements(worker, header, std::move(payload), actions);
    case wire::FrameType::kAck:
      return on_ack(worker, header, payload, actions);
    case wire::FrameType::kRelease:
      return on_release(worker, header, payload, actions);
    default:
      return absl::InvalidArgumentError(absl::StrCat("expected PUSH, ACK, HAND or RELEASE from ",
                                                     plans_.in_force()->member_name(worker), ", got ",
                                                     wire::name_of(header.type)));
  }
}

// Handles a kPush or a kHand, whose payload is the elements of a partition.
absl::Status Engine::on_elements(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const wire::PartitionKey key = key_of(header);
  GLN_ASSIGN_OR_RETURN(const bool fenced, plans_.is_fenced(worker, header.epoch, key));
  if (fenced) {
    ++fenced_;
    return absl::OkStatus();
  }
  const plan::Plan& plan = *plans_.in_force();
  GLN_RETURN_IF_ERROR(check_elements(plan, worker, header, payload));
  const bool is_push = header.type == wire::FrameType::kPush;
  if (running_sums_.has(plan.index_of(key.tensor, key.partition))) {
    return is_push ? running_sums_.push(worker, header, std::move(payload), actions)
                   : running_sums_.hand(worker, header, std::move(payload), actions);
  }
  return is_push ? sums_.push(worker, header, std::move(payload), actions)
                 : sums_.hand(worker, header, std::move(payload), actions);
}

// Handles a kAck. Checks all keys before it applies any of them.
absl::Status Engine::on_ack(uint32_t worker, const wire::Header& header, const Buffer& payload, Actions& actions) {
  const plan::Plan& plan = *plans_.in_force();
  GLN_RETURN_IF_ERROR(check_keys(plan, worker, header, payload));
  const size_t keys = payload.size() / sizeof(wire::PartitionKey);
  for (size_t i = 0; i < keys; ++i) {
    const wire::PartitionKey key = key_at(payload, i);
    GLN_ASSIGN_OR_RETURN(const bool fenced, plans_.is_fenced(worker, header.epoch, key));
    if (fenced || running_sums_.has(plan.index_of(key.tensor, key.partition))) continue;
    GLN_RETURN_IF_ERROR(sums_.check_progress(worker, key));
  }
  for (size_t i = 0; i < keys; ++i) {
    const wire::PartitionKey key = key_at(payload, i);
    const uint32_t index = plan.index_of(key.tensor, key.partition);
    if (plan::has_moved(plan.partitions[index], header.epoch)) {
      ++fenced_;
    } else if (running_sums_.has(index)) {
      running_sums_.acknowledge(worker, key, actions);
    } else {
      sums_.acknowledge(worker, key, actions);
    }
  }
  return absl::OkStatus();
}

// Handles a kRelease: a worker with no request in flight asks which of its kept results it may drop. The answer has the
// number of the first unreleased result, and those of the given keys whose partitions have no retained result.
absl::Status Engine::on_release(uint32_t worker, const wire::Header& header, const Buffer& payload, Actions& actions) {
  const plan::Plan& plan = *plans_.in_force();
  GLN_RETURN_IF_ERROR(check_keys(plan, worker, header, payload));
  Buffer released = pool_->take(payload.size());
  size_t count = 0;
  for (size_t i = 0; i < payload.size() / sizeof(wire::PartitionKey); ++i) {
    const wire::PartitionKey key = key_at(payload, i);
    GLN_ASSIGN_OR_RETURN(const bool fenced, plans_.is_fenced(worker, header.epoch, key));
    if (fenced || running_sums_.has(plan.index_of(key.tensor, key.partition)) || !sums_.is_released(key)) continue;
    std::memcpy(released.bytes().data() + count++ * sizeof(key), &key, sizeof(key));
  }
  wire::Header answer = make_header(identity_, plan.epoch, wire::FrameType::kRelease, {});
  answer.confirmed = releases_.first_unreleased();
  released = released.slice(0, count * sizeof(wire::PartitionKey));
  answer.payload_bytes = static_cast<uint32_t>(released.size());
  actions.sends.push_back({worker, answer, std::move(released)});
  return absl::OkStatus();
}

Counters Engine::counters() const {
  Counters counters = sums_.counters() + running_sums_.counters();
  counters.fenced = fenced_;
  counters.memory_bytes = memory_.reserved();
  counters.handed_bytes = sums_.handed_bytes();
  return counters;
}

bool Engine::idle() const { return memory_.reserved() + sums_.handed_bytes() == 0; }

bool Engine::idle_without(uint32_t worker) const { return idle() || sums_.is_idle_without(worker); }

}  // namespace gleaner::engine
