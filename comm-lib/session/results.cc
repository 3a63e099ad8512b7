#include "comm-lib/session/results.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/session/checks.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"

namespace gleaner::session {
namespace {

constexpr uint32_t kMostReleaseKeys = 1024;

}  // namespace

void Results::apply(std::shared_ptr<const plan::Plan> plan) {
  if (plan_ != nullptr) {
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      if (plan::has_moved(plan->partitions[i], plan_->epoch)) retention_.detach(i);
    }
    for (uint32_t i = 0; i < plan_->members.size(); ++i) {
      if (plan->members[i].since != plan_->members[i].since) retention_.forget(i);
    }
  }
  steps_.resize(plan->partitions.size());
  accumulated_.resize(plan->partitions.size());
  retention_.resize(plan->partitions.size(), plan->members.size(), plan->workers);
  plan_ = std::move(plan);
}

wire::PartitionKey Results::progress(uint32_t index) const {
  return key_of(*plan_, index, accumulates(index) ? accumulated_.version(index) : steps_[index]);
}

absl::Status Results::check(uint32_t index, const wire::Header& header, const Buffer& result) const {
  if (!accumulates(index)) return absl::OkStatus();
  return accumulated_.check(*plan_, index, identity_.worker, header, result);
}

void Results::take(uint32_t index, const wire::Header& header, Buffer result) {
  ++steps_[index];
  if (accumulates(index)) {
    accumulated_.keep(*plan_, index, std::move(result));
  } else if (plan_->contributors(plan_->tensors[plan_->partitions[index].tensor]) > 1 &&
             !GLN_MUTATION("results are not retained")) {
    retention_.keep(index, plan_->partitions[index].owner, header.sequence, std::move(result), header.op);
  }
}

// An owner that follows a later plan may have lost partitions to other owners. This worker may still have to send their
// results to the new owners, so it ignores `confirmed`.
void Results::release(uint32_t owner, const wire::Header& header) {
  if (header.epoch == plan_->epoch) {
    retention_.release(owner, header.confirmed);
  } else {
    GLN_RARE("session: a result of a plan that is not here yet");
  }
}

absl::Status Results::on_release(uint32_t owner, const wire::Header& header, const Buffer& payload) {
  if (payload.size() % sizeof(wire::PartitionKey) != 0 || header.payload_bytes != payload.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan_->member_name(owner), " sent a RELEASE of ", payload.size(), " bytes; expected whole keys"));
  }
  if (header.epoch != plan_->epoch) return absl::OkStatus();
  retention_.release(owner, header.confirmed);
  for (size_t at = 0; at < payload.size(); at += sizeof(wire::PartitionKey)) {
    wire::PartitionKey key;
    std::memcpy(&key, payload.bytes().data() + at, sizeof(key));
    wire::Header named = header;
    named.tensor = key.tensor;
    named.partition = key.partition;
    GLN_RETURN_IF_ERROR(check_exists(*plan_, owner, named));
    const uint32_t index = plan_->index_of(key.tensor, key.partition);
    if (key.step == steps_[index] && retention_.is_detached(index)) retention_.drop(index);
  }
  return absl::OkStatus();
}

std::optional<exchange::Send> Results::ask_for_release(uint32_t owner, std::span<const uint32_t> owned) const {
  bool keeps_any = false;
  Buffer keys;
  uint32_t count = 0;
  for (const uint32_t index : owned) {
    if (!retention_.is_needed_by_others(index)) continue;
    keeps_any = true;
    if (!retention_.is_detached(index) || count == kMostReleaseKeys) continue;
    if (count == 0) keys = pool_->take(kMostReleaseKeys * sizeof(wire::PartitionKey));
    const wire::PartitionKey key = progress(index);
    std::memcpy(keys.bytes().data() + count++ * sizeof(key), &key, sizeof(key));
  }
  if (!keeps_any) return std::nullopt;
  Buffer payload = keys.slice(0, count * sizeof(wire::PartitionKey));
  const wire::Header header = make_header(identity_, plan_->epoch, wire::FrameType::kRelease, payload);
  return exchange::Send{owner, header, std::move(payload)};
}

std::optional<exchange::Send> Results::hand_on(uint32_t owner, uint32_t index, const wire::Header& wanted) const {
  const Retention::Result& kept = retention_.find(index);
  const bool is_accumulated = accumulates(index);
  const Buffer& result = is_accumulated ? accumulated_.answer(index) : kept.buffer;
  const bool is_wanted = is_accumulated ? accumulated_.version(index) == wanted.step : steps_[index] == wanted.step + 1;
  if (result.empty() || !is_wanted) {
    GLN_RARE("session: an owner asks for a result that is not kept any more");
    return std::nullopt;
  }
  wire::Header header =
      make_header(identity_, *plan_, wire::FrameType::kHand, {wanted.step, wanted.tensor, wanted.partition}, result);
  header.data_type = plan_->tensors[wanted.tensor].type;
  header.op = is_accumulated ? ReduceOp::kAccumulate : kept.op;
  return exchange::Send{owner, header, result};
}

}  // namespace gleaner::session
