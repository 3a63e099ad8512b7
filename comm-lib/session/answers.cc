// Frames from owners and the replies to them: results, acknowledgements, results handed on, and the release of retained
// results.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/session/checks.h"
#include "comm-lib/session/session.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"

namespace gleaner::session {
namespace {

constexpr uint32_t kMostReleaseKeys = 1024;

}  // namespace

// Checks that a frame of the current step answers a push of this worker. The caller has handled late copies.
absl::Status Session::check_answer(uint32_t index, const wire::Header& header) const {
  const PartitionState& state = partitions_[index];
  const bool awaited = state.missing && state.pushed;
  if (!awaited || header.step != state.step) {
    return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(header.sender), " sent ",
                                                      describe(*plan_, header),
                                                      ", but this worker has not pushed its contribution"));
  }
  const ReduceOp op = pieces_.op(index);
  const DataType type = plan_->tensors[header.tensor].type;
  const bool is_result = header.type == wire::FrameType::kResult;
  if (is_result && (header.data_type != type || header.op != op)) {
    return absl::InvalidArgumentError(absl::StrCat(
        plan_->member_name(header.sender), " sent ", describe(*plan_, header), " as ", name_of(header.data_type),
        " op ", static_cast<int>(header.op), ", expected ", name_of(type), " op ", static_cast<int>(op)));
  }
  return absl::OkStatus();
}

absl::Status Session::on_frame(uint32_t owner, const wire::Header& header, Buffer payload, absl::Duration now,
                               Actions& actions) {
  if (!failure_.ok()) return absl::OkStatus();
  if (plan_ == nullptr) return absl::FailedPreconditionError("a frame arrived before the first plan");
  GLN_RETURN_IF_ERROR(check_peer(*plan_, options_.job, owner, header));
  if (header.type == wire::FrameType::kCommitted) return absl::OkStatus();  // member::Membership handles it
  if (header.type == wire::FrameType::kRelease) return on_release(owner, header, payload);
  if (header.type == wire::FrameType::kRefuse) {
    const MutableBytes text = payload.bytes();
    actions.refused.Update(absl::InvalidArgumentError(
        absl::StrCat(plan_->member_name(owner), " refuses a frame that this worker sent: ",
                     absl::string_view(reinterpret_cast<const char*>(text.data()), text.size()))));
    return absl::OkStatus();
  }
  GLN_RETURN_IF_ERROR(check_exists(*plan_, owner, header));
  const uint32_t index = plan_->index_of(header.tensor, header.partition);
  // The frame belongs to an epoch in which another owner had the partition. There is no upper limit of the epoch,
  // because an owner may follow a later plan than this worker.
  if (plan::has_moved(plan_->partitions[index], header.epoch)) {
    GLN_RARE("session: an earlier owner's answer is dropped");
    return absl::OkStatus();
  }
  GLN_RETURN_IF_ERROR(check_frame(*plan_, owner, header, payload));
  if (header.type == wire::FrameType::kResult) {
    GLN_RETURN_IF_ERROR(on_result(owner, index, header, std::move(payload), now, actions));
  } else if (header.type == wire::FrameType::kDefer) {
    GLN_RETURN_IF_ERROR(on_defer(owner, index, header, now));
  } else {
    hand_on(owner, index, header, actions);
  }
  send_pushes(now, actions);
  pieces_.complete(actions.done);
  return absl::OkStatus();
}

absl::Status Session::on_result(uint32_t owner, uint32_t index, const wire::Header& header, Buffer payload,
                                absl::Duration now, Actions& actions) {
  PartitionState& state = partitions_[index];
  const bool is_late = header.step < state.step;
  if (!is_late) GLN_RETURN_IF_ERROR(check_answer(index, header));
  if (!is_late && accumulates(index)) {
    GLN_RETURN_IF_ERROR(accumulated_.check(*plan_, index, options_.worker, header, payload));
  }
  // An owner that follows a later plan may have lost partitions to other owners. This worker may still have to send
  // their results to the new owners, so it ignores `released`.
  if (header.epoch == plan_->epoch) {
    retention_.release(owner, header.released);
  } else {
    GLN_RARE("session: a result of a plan that is not here yet");
  }
  if (is_late) {
    ++counters_.duplicate_results;
    if (!accumulates(index)) acknowledge(owner, index, actions);
  } else {
    take_result(owner, index, header, std::move(payload), now, actions);
  }
  return absl::OkStatus();
}

absl::Status Session::on_defer(uint32_t owner, uint32_t index, const wire::Header& header, absl::Duration now) {
  if (header.step < partitions_[index].step) return absl::OkStatus();
  GLN_RETURN_IF_ERROR(check_answer(index, header));
  if (queue_.defer(index, now)) {
    ++counters_.deferred;
    waits_.on_defer(owner, now);
  }
  return absl::OkStatus();
}

void Session::take_result(uint32_t owner, uint32_t index, const wire::Header& header, Buffer payload,
                          absl::Duration now, Actions& actions) {
  const plan::Partition& partition = plan_->partitions[index];
  PartitionState& state = partitions_[index];
  const bool is_delayed =
      state.moved && pieces_.is_in_place(index) && !GLN_MUTATION("results go over input that is still being sent");
  if (is_delayed) GLN_RARE("session: a result waits for frames to an earlier owner");
  pieces_.add_result(index, partition.offset, partition.bytes, payload, is_delayed);
  state.moved = false;
  ++state.step;
  state.missing = false;
  state.pushed = false;
  ++counters_.results;
  queue_.finish(index, now);
  waits_.on_result(owner, now);
  if (accumulates(index)) {
    accumulated_.keep(*plan_, index, std::move(payload));
  } else {
    if (plan_->workers > 1 && !GLN_MUTATION("results are not retained")) {
      retention_.keep(index, owner, header.sequence, std::move(payload), header.op);
    }
    acknowledge(owner, index, actions);
  }
}

// Sends a result or a running sum to a new owner that lacks it. If this worker no longer keeps it, every worker has the
// result, or this worker has sent it before and the owner's frame is late.
void Session::hand_on(uint32_t owner, uint32_t index, const wire::Header& wanted, Actions& actions) {
  const Retention::Result& kept = retention_.find(index);
  const bool is_accumulated = accumulates(index);
  const Buffer& result = is_accumulated ? accumulated_.answer(index) : kept.buffer;
  const bool is_wanted =
      is_accumulated ? accumulated_.version(index) == wanted.step : partitions_[index].step == wanted.step + 1;
  if (result.empty() || !is_wanted) {
    GLN_RARE("session: an owner asks for a result that is not kept any more");
    return;
  }
  ++counters_.handed;
  wire::Header header = header_of(wire::FrameType::kHand, result);
  header.data_type = plan_->tensors[wanted.tensor].type;
  header.op = is_accumulated ? ReduceOp::kAccumulate : kept.op;
  header.tensor = wanted.tensor;
  header.partition = wanted.partition;
  header.step = wanted.step;
  actions.sends.push_back({owner, header, result});
}

// Tells the owner the progress of this worker with a partition (key_of()).
void Session::acknowledge(uint32_t owner, uint32_t index, Actions& actions) {
  if (acks_.add(owner, key_of(index))) flush_acks(owner, actions);
}

wire::PartitionKey Session::key_of(uint32_t index) const {
  const uint32_t tensor = plan_->partitions[index].tensor;
  const uint64_t how_far = accumulates(index) ? accumulated_.version(index) : partitions_[index].step;
  return {how_far, tensor, index - plan_->first_partition[tensor]};
}

// Tells the owner the progress of this worker with all partitions that came to the owner after the plan of epoch
// `since`. Leaves out new tensors, since every worker is at step 0 of these.
void Session::tell_progress(uint32_t owner, uint32_t since, Actions& actions) {
  for (uint32_t index : queue_.owned_by(owner)) {
    const plan::Partition& partition = plan_->partitions[index];
    const bool is_new = partition.since == plan_->tensors[partition.tensor].since && partitions_[index].step == 0;
    if (!is_new && plan::has_moved(partition, since)) acknowledge(owner, index, actions);
  }
  flush_acks(owner, actions);
}

void Session::flush_acks(uint32_t owner, Actions& actions) {
  Buffer payload = acks_.take(owner);
  if (payload.empty()) return;
  const wire::Header header = header_of(wire::FrameType::kAck, payload);
  actions.sends.push_back({owner, header, std::move(payload)});
}

absl::Status Session::on_release(uint32_t owner, const wire::Header& header, const Buffer& payload) {
  if (payload.size() % sizeof(wire::PartitionKey) != 0 || header.payload_bytes != payload.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan_->member_name(owner), " sent a RELEASE of ", payload.size(), " bytes; expected whole keys"));
  }
  if (header.epoch != plan_->epoch) return absl::OkStatus();
  retention_.release(owner, header.released);
  for (size_t at = 0; at < payload.size(); at += sizeof(wire::PartitionKey)) {
    wire::PartitionKey key;
    std::memcpy(&key, payload.bytes().data() + at, sizeof(key));
    wire::Header named = header;
    named.tensor = key.tensor;
    named.partition = key.partition;
    GLN_RETURN_IF_ERROR(check_exists(*plan_, owner, named));
    const uint32_t index = plan_->index_of(key.tensor, key.partition);
    if (key.step == partitions_[index].step && retention_.is_detached(index)) retention_.drop(index);
  }
  return absl::OkStatus();
}

// Asks the owner which of its results every worker has.
void Session::ask_for_release(uint32_t owner, Actions& actions) {
  bool keeps_any = false;
  Buffer keys;
  uint32_t count = 0;
  for (uint32_t index : queue_.owned_by(owner)) {
    if (!retention_.is_needed_by_others(index)) continue;
    keeps_any = true;
    if (!retention_.is_detached(index) || count == kMostReleaseKeys) continue;
    if (count == 0) keys = pool_->take(kMostReleaseKeys * sizeof(wire::PartitionKey));
    const wire::PartitionKey key = key_of(index);
    std::memcpy(keys.bytes().data() + count++ * sizeof(key), &key, sizeof(key));
  }
  if (!keeps_any) return;
  Buffer payload = keys.slice(0, count * sizeof(wire::PartitionKey));
  const wire::Header header = header_of(wire::FrameType::kRelease, payload);
  actions.sends.push_back({owner, header, std::move(payload)});
}

}  // namespace gleaner::session
