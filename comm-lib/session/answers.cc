// What owners say, and what they are told of it: results, acknowledgements, what is handed on and what is let go.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/session/checks.h"
#include "comm-lib/session/core.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"

namespace gleaner::session {
namespace {

constexpr uint32_t kMostReleaseKeys = 1024;
constexpr absl::Duration kFirstReleasePause = absl::Milliseconds(10);
constexpr absl::Duration kLongestReleasePause = absl::Milliseconds(500);

}  // namespace

// --- frames

// That a frame which is no late copy answers a push of this worker.
absl::Status Session::Core::check_answer(uint32_t index, const wire::Header& header) const {
  const PartitionState& state = partitions_[index];
  const bool awaited = state.missing && state.pushed;
  if (!awaited || header.step != state.step) {
    return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(header.sender), " sent ",
                                                      describe(*plan_, header),
                                                      ", to which this worker has not pushed its part"));
  }
  const ReduceOp op = requests_[state.request].asked.op;
  const DataType type = plan_->tensors[header.tensor].type;
  const bool is_result = header.type == wire::FrameType::kResult;
  if (is_result && (header.data_type != type || header.op != op)) {
    return absl::InvalidArgumentError(absl::StrCat(
        plan_->member_name(header.sender), " sent ", describe(*plan_, header), " as ", name_of(header.data_type),
        " op ", static_cast<int>(header.op), ", expected ", name_of(type), " op ", static_cast<int>(op)));
  }
  return absl::OkStatus();
}

absl::Status Session::Core::on_frame(uint32_t owner, const wire::Header& header, Buffer payload, absl::Duration now,
                                     Actions& actions) {
  if (!failure_.ok()) return absl::OkStatus();
  if (plan_ == nullptr) return absl::FailedPreconditionError("a frame before the first plan");
  GLN_RETURN_IF_ERROR(check_peer(*plan_, options_.job, owner, header));
  if (header.type == wire::FrameType::kCommitted) return absl::OkStatus();  // member::Membership goes by it
  if (header.type == wire::FrameType::kRelease) return on_release(owner, header, payload);
  if (header.type == wire::FrameType::kRefuse) {
    const MutableBytes text = payload.bytes();
    actions.refused.Update(absl::InvalidArgumentError(
        absl::StrCat(plan_->member_name(owner), " refuses what this worker sent: ",
                     absl::string_view(reinterpret_cast<const char*>(text.data()), text.size()))));
    return absl::OkStatus();
  }
  GLN_RETURN_IF_ERROR(check_exists(*plan_, owner, header));
  const uint32_t index = plan_->index_of(header.tensor, header.partition);
  // Of another owner's time; but an owner may be ahead of this worker, so there is no upper limit to its epoch.
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
  complete(actions);
  return absl::OkStatus();
}

absl::Status Session::Core::on_result(uint32_t owner, uint32_t index, const wire::Header& header, Buffer payload,
                                      absl::Duration now, Actions& actions) {
  PartitionState& state = partitions_[index];
  const bool is_late = header.step < state.step;
  if (!is_late) GLN_RETURN_IF_ERROR(check_answer(index, header));
  if (!is_late && accumulates(index)) GLN_RETURN_IF_ERROR(check_accumulated(index, header, payload));
  // An owner that is ahead may have let go of results that are still to be handed on.
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

absl::Status Session::Core::on_defer(uint32_t owner, uint32_t index, const wire::Header& header, absl::Duration now) {
  if (header.step < partitions_[index].step) return absl::OkStatus();
  GLN_RETURN_IF_ERROR(check_answer(index, header));
  if (queue_.defer(index, now)) {
    ++counters_.deferred;
    owners_[owner].since = now;
  }
  return absl::OkStatus();
}

void Session::Core::take_result(uint32_t owner, uint32_t index, const wire::Header& header, Buffer payload,
                                absl::Duration now, Actions& actions) {
  const plan::Partition& partition = plan_->partitions[index];
  PartitionState& state = partitions_[index];
  RequestState& request = requests_[state.request];
  const uint64_t offset = partition.offset - request.offset;
  if (state.moved && request.in_place() && !GLN_MUTATION("results go over input that is still being sent")) {
    GLN_RARE("session: a result waits for frames to an earlier owner");
    request.held.push_back({offset, payload.slice(0, partition.bytes)});
  } else {
    std::memcpy(request.asked.output.data() + offset, payload.bytes().data(), partition.bytes);
  }
  state.moved = false;
  ++state.step;
  state.missing = false;
  state.pushed = false;
  ++counters_.results;
  queue_.finish(index, now);
  owners_[owner].since = now;
  --owners_[owner].missing;
  --owners_[owner].pushed;
  if (accumulates(index)) {
    keep_accumulated(index, std::move(payload));
  } else {
    if (plan_->workers > 1 && !GLN_MUTATION("results are not retained")) {
      retention_.keep(index, owner, header.sequence, std::move(payload), header.op);
    }
    acknowledge(owner, index, actions);
  }
  if (--request.missing == 0) whole_.push_back(state.request);
}

// A later owner lacks what this worker has. Where nothing is kept of it, every worker has it, and this was asked long
// ago.
void Session::Core::hand_on(uint32_t owner, uint32_t index, const wire::Header& wanted, Actions& actions) {
  if (accumulates(index)) return hand_on_accumulated(owner, index, wanted, actions);
  const Retention::Kept& kept = retention_.find(index);
  if (kept.result.empty() || wanted.step + 1 != partitions_[index].step) {
    GLN_RARE("session: what nobody lacks any more is asked for");
    return;
  }
  ++counters_.handed;
  wire::Header header = header_of(wire::FrameType::kHand, kept.result);
  header.data_type = plan_->tensors[wanted.tensor].type;
  header.op = kept.op;
  header.tensor = wanted.tensor;
  header.partition = wanted.partition;
  header.step = wanted.step;
  actions.sends.push_back({owner, header, kept.result});
}

// --- acknowledgements

// Says how far this worker is with a partition.
void Session::Core::acknowledge(uint32_t owner, uint32_t index, Actions& actions) {
  if (acks_.add(owner, key_of(index))) flush_acks(owner, actions);
}

wire::PartitionKey Session::Core::key_of(uint32_t index) const {
  const uint32_t tensor = plan_->partitions[index].tensor;
  const uint64_t how_far = accumulates(index) ? accumulated_[index].version : partitions_[index].step;
  return {how_far, tensor, index - plan_->first_partition[tensor]};
}

// The same of all its partitions that came to it after the plan of epoch `since`. Of a new tensor there is nothing to
// say.
void Session::Core::tell_progress(uint32_t owner, uint32_t since, Actions& actions) {
  for (uint32_t index : queue_.owned_by(owner)) {
    const plan::Partition& partition = plan_->partitions[index];
    const bool is_new = partition.since == plan_->tensors[partition.tensor].since && partitions_[index].step == 0;
    if (!is_new && plan::has_moved(partition, since)) acknowledge(owner, index, actions);
  }
  flush_acks(owner, actions);
}

void Session::Core::flush_acks(uint32_t owner, Actions& actions) {
  Buffer payload = acks_.take(owner);
  if (payload.empty()) return;
  const wire::Header header = header_of(wire::FrameType::kAck, payload);
  actions.sends.push_back({owner, header, std::move(payload)});
}

// --- letting go

absl::Status Session::Core::on_release(uint32_t owner, const wire::Header& header, const Buffer& payload) {
  if (payload.size() % sizeof(wire::PartitionKey) != 0 || header.payload_bytes != payload.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan_->member_name(owner), " sent a RELEASE of ", payload.size(), " bytes, expected whole keys"));
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

// With nothing in flight no result comes that would say what every worker has: so it is asked for.
void Session::Core::ask_for_release(absl::Duration now, Actions& actions) {
  const bool quiet = active_ == 0 && started_ == started_before_;
  started_before_ = started_;
  if (!quiet || retention_.relied_on() == 0) {
    release_pause_ = kFirstReleasePause;
    return;
  }
  if (now < ask_again_at_) return;
  ask_again_at_ = now + release_pause_;
  release_pause_ = std::min(2 * release_pause_, kLongestReleasePause);
  for (uint32_t owner = 0; owner < owners_.size(); ++owner) {
    if (queue_.is_connected(owner)) ask_for_release(owner, actions);
  }
}

void Session::Core::ask_for_release(uint32_t owner, Actions& actions) {
  bool keeps_any = false;
  Buffer keys;
  uint32_t count = 0;
  for (uint32_t index : queue_.owned_by(owner)) {
    if (!retention_.is_relied_on(index)) continue;
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
