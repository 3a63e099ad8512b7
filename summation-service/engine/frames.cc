// What workers send, checked as a whole before anything of it counts.
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"
#include "summation-service/engine/checks.h"
#include "summation-service/engine/core.h"

namespace gleaner::engine {
namespace {

wire::PartitionKey key_at(const Buffer& payload, size_t index) {
  wire::PartitionKey key;
  std::memcpy(&key, payload.bytes().data() + index * sizeof(key), sizeof(key));
  return key;
}

const char* verb(ReduceOp op) { return op == ReduceOp::kAverage ? "averages" : "sums"; }

}  // namespace

// --- frames

absl::Status Engine::Core::on_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  absl::Status status = take_frame(worker, header, std::move(payload), actions);
  if (absl::IsInvalidArgument(status)) refuse(worker, header, status, actions);
  return status;
}

// Says so in a frame of its own: what a connection's end says may be lost, and its worker would connect again.
void Engine::Core::refuse(uint32_t worker, const wire::Header& header, const absl::Status& why,
                          Actions& actions) const {
  const absl::string_view text = why.message().substr(0, wire::kMaxHandshakePayload);
  Buffer payload = pool_->take(text.size());
  std::memcpy(payload.bytes().data(), text.data(), text.size());
  wire::Header refusal;
  refusal.type = wire::FrameType::kRefuse;
  refusal.job = options_.job;
  refusal.epoch = plan_ == nullptr ? 0 : plan_->epoch;
  refusal.sender = options_.self;
  refusal.tensor = header.tensor;
  refusal.partition = header.partition;
  refusal.step = header.step;
  refusal.payload_bytes = static_cast<uint32_t>(payload.size());
  actions.push_back({worker, refusal, std::move(payload)});
}

absl::Status Engine::Core::take_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  GLN_RETURN_IF_ERROR(check_peer(worker, header));
  // Everybody has acknowledged that plan, and this worker has heard so.
  if (prepared_ != nullptr && header.epoch == prepared_->epoch) {
    GLN_RARE("engine: a frame commits the plan");
    come_into_force(actions);
  }
  switch (header.type) {
    case wire::FrameType::kPush:
    case wire::FrameType::kHand:
      return on_numbers(worker, header, std::move(payload), actions);
    case wire::FrameType::kAck:
      return on_ack(worker, header, payload, actions);
    case wire::FrameType::kRelease:
      return on_release(worker, header, payload, actions);
    default:
      return absl::InvalidArgumentError(absl::StrCat("expected PUSH, ACK, HAND or RELEASE from ",
                                                     plan_->member_name(worker), ", got ", wire::name_of(header.type)));
  }
}

absl::Status Engine::Core::check_peer(uint32_t worker, const wire::Header& header) const {
  const bool commits = prepared_ != nullptr && header.epoch == prepared_->epoch;
  const plan::Plan* plan = commits ? prepared_.get() : plan_.get();
  if (plan == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("member ", worker, " sent a frame of epoch ", header.epoch, " before any plan was prepared"));
  }
  if (worker >= plan->workers || header.sender != worker || header.job != options_.job) {
    return absl::InvalidArgumentError(absl::StrCat("expected a frame of job ", options_.job, " from member ", worker,
                                                   ", one of ", plan->workers, " workers; got one of job ", header.job,
                                                   " from member ", header.sender));
  }
  if (header.epoch > plan->epoch) {
    return absl::FailedPreconditionError(absl::StrCat(plan->member_name(worker), " sent a frame of epoch ",
                                                      header.epoch, ", but the latest plan known here is of epoch ",
                                                      plan->epoch));
  }
  return absl::OkStatus();
}

// Whether what this frame says of the partition is of another owner's time.
absl::StatusOr<bool> Engine::Core::is_fenced(uint32_t worker, const wire::Header& header,
                                             const wire::PartitionKey& key) const {
  GLN_RETURN_IF_ERROR(check_exists(*plan_, worker, key));
  if (plan::has_moved(plan_->partitions[index_of(key)], header.epoch)) {
    GLN_RARE("engine: what is of another owner's time is dropped");
    return !GLN_MUTATION("frames of earlier epochs count");
  }
  GLN_RETURN_IF_ERROR(check_owner(*plan_, options_.self, worker, key));
  return false;
}

// That a worker can be where it says it is: it has all results of this partition before key.step.
absl::Status Engine::Core::check_progress(uint32_t worker, const wire::PartitionKey& key) const {
  const PartitionState& state = partitions_[index_of(key)];
  if (state.accumulation != nullptr) return absl::OkStatus();  // it says which version it has
  if (state.takeover != nullptr) {
    if (state.takeover->has_heard(worker) ? key.step <= state.step : state.takeover->fits(key.step, state.step)) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(worker), " is at ", describe(*plan_, key),
                                                      ", and others are at step ", state.step,
                                                      ": they can't be that far apart"));
  }
  if (key.step <= state.step) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(worker), " is at ", describe(*plan_, key),
                                                    ", but step ", state.step, " is not summed yet"));
}

// That a push has the op of what is already here.
absl::Status Engine::Core::check_op(uint32_t worker, const wire::Header& header) const {
  const PartitionState& state = partitions_[index_of(key_of(header))];
  const Sum* sum = header.step == state.step ? state.gathering : nullptr;
  if (sum == nullptr || sum->op == header.op) return absl::OkStatus();
  uint32_t other = 0;
  while (!sum->has_contribution(other)) ++other;
  return absl::InvalidArgumentError(absl::StrCat(plan_->member_name(worker), " ", verb(header.op), " ",
                                                 describe(*plan_, key_of(header)), ", but ", plan_->member_name(other),
                                                 " ", verb(sum->op), " it: all workers must use the same op"));
}

// That a result handed on was asked for, or might have been.
absl::Status Engine::Core::check_handed(uint32_t worker, const wire::Header& header) const {
  if (header.step < partitions_[index_of(key_of(header))].step) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(worker), " handed on ",
                                                    describe(*plan_, key_of(header)), ", for which nobody asked"));
}

// Numbers of a partition: pushed, or handed on.
absl::Status Engine::Core::on_numbers(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  GLN_ASSIGN_OR_RETURN(const bool fenced, is_fenced(worker, header, key_of(header)));
  if (fenced) {
    ++counters_.fenced;
    return absl::OkStatus();
  }
  GLN_RETURN_IF_ERROR(check_numbers(*plan_, worker, header, payload));
  return header.type == wire::FrameType::kPush ? on_push(worker, header, std::move(payload), actions)
                                               : on_hand(worker, header, std::move(payload), actions);
}

absl::Status Engine::Core::on_push(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const wire::PartitionKey key = key_of(header);
  if (accumulates(index_of(key))) return accumulate(worker, header, std::move(payload), actions);
  GLN_RETURN_IF_ERROR(check_progress(worker, key));
  GLN_RETURN_IF_ERROR(check_op(worker, header));
  push(worker, header, std::move(payload), actions);
  return absl::OkStatus();
}

absl::Status Engine::Core::on_ack(uint32_t worker, const wire::Header& header, const Buffer& payload,
                                  Actions& actions) {
  GLN_RETURN_IF_ERROR(check_keys(*plan_, worker, header, payload));
  const size_t keys = payload.size() / sizeof(wire::PartitionKey);
  for (size_t i = 0; i < keys; ++i) {
    GLN_ASSIGN_OR_RETURN(const bool fenced, is_fenced(worker, header, key_at(payload, i)));
    if (!fenced) GLN_RETURN_IF_ERROR(check_progress(worker, key_at(payload, i)));
  }
  for (size_t i = 0; i < keys; ++i) {
    const wire::PartitionKey key = key_at(payload, i);
    if (plan::has_moved(plan_->partitions[index_of(key)], header.epoch)) {
      ++counters_.fenced;
    } else {
      acknowledge(worker, key, actions);
    }
  }
  return absl::OkStatus();
}

absl::Status Engine::Core::on_hand(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const uint32_t index = index_of(key_of(header));
  if (accumulates(index)) return inherit(worker, header, std::move(payload), actions);
  GLN_RETURN_IF_ERROR(check_handed(worker, header));
  PartitionState& state = partitions_[index];
  const bool awaited = state.takeover != nullptr && state.retained != nullptr && header.step + 1 == state.step;
  if (!awaited) {
    GLN_RARE("engine: a result is handed on twice");
    ++counters_.duplicates;
    return absl::OkStatus();
  }
  ++counters_.handed;
  state.takeover = nullptr;
  Sum& sum = *state.retained;
  sum.op = header.op;
  sum.result = std::move(payload);
  sum.number = releases_.add();
  for (uint32_t i = 0; i < plan_->workers; ++i) {
    if (!sum.has_acknowledged(i)) send_result(i, index, header.payload_crc, actions);
  }
  return absl::OkStatus();
}

// A worker with nothing in flight wants to let go of what it keeps.
absl::Status Engine::Core::on_release(uint32_t worker, const wire::Header& header, const Buffer& payload,
                                      Actions& actions) {
  GLN_RETURN_IF_ERROR(check_keys(*plan_, worker, header, payload));
  Buffer released = pool_->take(payload.size());
  size_t count = 0;
  for (size_t i = 0; i < payload.size() / sizeof(wire::PartitionKey); ++i) {
    const wire::PartitionKey key = key_at(payload, i);
    GLN_ASSIGN_OR_RETURN(const bool fenced, is_fenced(worker, header, key));
    if (fenced) continue;
    const PartitionState& state = partitions_[index_of(key)];
    if (state.takeover != nullptr || state.retained != nullptr || key.step > state.step ||
        state.accumulation != nullptr) {
      continue;
    }
    std::memcpy(released.bytes().data() + count++ * sizeof(key), &key, sizeof(key));
  }
  wire::Header answer = header_of(wire::FrameType::kRelease, {});
  answer.released = releases_.first_unreleased();
  released = released.slice(0, count * sizeof(wire::PartitionKey));
  answer.payload_bytes = static_cast<uint32_t>(released.size());
  actions.push_back({worker, answer, std::move(released)});
  return absl::OkStatus();
}

}  // namespace gleaner::engine
