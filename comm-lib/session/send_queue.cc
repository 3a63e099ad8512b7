#include "comm-lib/session/send_queue.h"

#include <algorithm>
#include <functional>

namespace gleaner::session {
namespace {

// Far above any link's worth of bytes, and small enough that no product below overflows.
constexpr uint64_t kMaxWindowBytes = uint64_t{1} << 44;
constexpr uint64_t kMaxGrowth = uint64_t{1} << 16;
constexpr int kMaxDoublings = 6;

void push(std::vector<uint64_t>& heap, uint64_t key) {
  heap.push_back(key);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

void pop(std::vector<uint64_t>& heap) {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  heap.pop_back();
}

uint32_t partition_of(uint64_t key) { return static_cast<uint32_t>(key); }

}  // namespace

SendQueue::SendQueue(uint64_t window_bytes, absl::Duration stall_after, absl::Duration defer_retry)
    : window_bytes_(std::min(window_bytes, kMaxWindowBytes)), stall_after_(stall_after), defer_retry_(defer_retry) {}

uint64_t SendQueue::key(uint32_t partition) const {
  const int32_t priority = plan_->tensors[plan_->partitions[partition].tensor].priority;
  const uint32_t ordered = static_cast<uint32_t>(priority) ^ 0x80000000u;  // lower priorities first, as unsigned
  return uint64_t{ordered} << 32 | partition;
}

void SendQueue::apply(const plan::Plan* plan) {
  const auto known = static_cast<uint32_t>(partitions_.size());
  plan_ = plan;
  partitions_.resize(plan->partitions.size());
  if (owners_.empty()) {
    owners_.resize(plan->members.size());
    tournament_.reset(owners_.size());
  }
  for (uint32_t i = known; i < plan->partitions.size(); ++i) owners_[plan->partitions[i].owner].owned.push_back(i);
  for (Owner& owner : owners_) {
    owner.ready.reserve(owner.owned.size());
    owner.deferred.reserve(owner.owned.size());
  }
  set_limits();
  refresh_all();
}

void SendQueue::set_limits() {
  double total = 0;
  for (const plan::Partition& partition : plan_->partitions) total += partition.bytes;
  for (Owner& owner : owners_) {
    double bytes = 0;
    uint64_t largest = 0;
    for (uint32_t partition : owner.owned) {
      bytes += plan_->partitions[partition].bytes;
      largest = std::max<uint64_t>(largest, plan_->partitions[partition].bytes);
    }
    const double share = total > 0 ? bytes / total : 0;
    owner.limit_bytes = std::max(2 * largest, static_cast<uint64_t>(2 * share * static_cast<double>(window_bytes_)));
  }
}

void SendQueue::make_ready(uint32_t partition) {
  PartitionState& state = partitions_[partition];
  const uint32_t owner = plan_->partitions[partition].owner;
  state.phase = Phase::kReady;
  if (!state.in_ready_heap) push(owners_[owner].ready, key(partition));
  state.in_ready_heap = true;
  refresh(owner);
}

std::optional<uint32_t> SendQueue::next(absl::Duration now) {
  if (tournament_.best_key() == Tournament::kOut) return std::nullopt;
  const uint32_t partition = partition_of(tournament_.best_key());
  const uint64_t bytes = plan_->partitions[partition].bytes;
  if (outstanding_bytes_ > 0 && outstanding_bytes_ + bytes > window_bytes_ * growth_) return std::nullopt;
  if (outstanding_bytes_ == 0) last_progress_ = now;
  Owner& owner = owners_[tournament_.best_player()];
  pop(owner.ready);
  partitions_[partition].in_ready_heap = false;
  partitions_[partition].phase = Phase::kSent;
  owner.outstanding_bytes += bytes;
  outstanding_bytes_ += bytes;
  refresh(tournament_.best_player());
  return partition;
}

bool SendQueue::defer(uint32_t partition, absl::Duration now) {
  PartitionState& state = partitions_[partition];
  if (state.phase != Phase::kSent) return false;
  leave_window(partition);
  const uint32_t owner = plan_->partitions[partition].owner;
  state.phase = Phase::kDeferred;
  state.retry_at = now + defer_retry_ * (1 << std::min<int>(state.deferrals, kMaxDoublings));
  if (state.deferrals < kMaxDoublings) ++state.deferrals;
  if (!state.in_deferred_heap) push(owners_[owner].deferred, key(partition));
  state.in_deferred_heap = true;
  refresh(owner);
  return true;
}

void SendQueue::finish(uint32_t partition, absl::Duration now) {
  PartitionState& state = partitions_[partition];
  const uint32_t owner = plan_->partitions[partition].owner;
  if (state.phase == Phase::kSent) leave_window(partition);
  state.phase = Phase::kIdle;
  state.deferrals = 0;
  last_progress_ = now;
  retry_most_urgent(owners_[owner]);
  if (growth_ > 1) {
    growth_ = 1;
    refresh_all();
  } else {
    refresh(owner);
  }
}

void SendQueue::connect(uint32_t owner) {
  owners_[owner].connected = true;
  refresh(owner);
}

void SendQueue::disconnect(uint32_t owner) {
  owners_[owner].connected = false;
  for (uint32_t partition : owners_[owner].owned) {
    if (partitions_[partition].phase != Phase::kSent) continue;
    leave_window(partition);
    make_ready(partition);
  }
  refresh(owner);
}

bool SendQueue::tick(absl::Duration now) {
  bool held_back = false;
  for (uint32_t i = 0; i < owners_.size(); ++i) {
    Owner& owner = owners_[i];
    if (!owner.deferred.empty()) {
      retry_due(owner, now);
      refresh(i);
    }
    held_back = held_back || (owner.connected && has_ready(owner));
  }
  if (!held_back || outstanding_bytes_ == 0 || now - last_progress_ < stall_after_ || growth_ == kMaxGrowth)
    return false;
  ++growth_;
  last_progress_ = now;
  refresh_all();
  return true;
}

void SendQueue::clear() {
  for (PartitionState& state : partitions_) state = {};
  for (Owner& owner : owners_) {
    owner.ready.clear();
    owner.deferred.clear();
    owner.outstanding_bytes = 0;
  }
  outstanding_bytes_ = 0;
  growth_ = 1;
  refresh_all();
}

bool SendQueue::fits_owner(const Owner& owner, uint32_t partition) const {
  return owner.outstanding_bytes == 0 ||
         owner.outstanding_bytes + plan_->partitions[partition].bytes <= owner.limit_bytes * growth_;
}

bool SendQueue::has_ready(Owner& owner) {
  while (!owner.ready.empty()) {
    PartitionState& head = partitions_[partition_of(owner.ready.front())];
    if (head.phase == Phase::kReady) return true;
    head.in_ready_heap = false;
    pop(owner.ready);
  }
  return false;
}

void SendQueue::refresh(uint32_t index) {
  Owner& owner = owners_[index];
  const bool may_send = owner.connected && has_ready(owner) && fits_owner(owner, partition_of(owner.ready.front()));
  tournament_.set(index, may_send ? owner.ready.front() : Tournament::kOut);
}

void SendQueue::refresh_all() {
  for (uint32_t i = 0; i < owners_.size(); ++i) refresh(i);
}

void SendQueue::leave_window(uint32_t partition) {
  const plan::Partition& what = plan_->partitions[partition];
  owners_[what.owner].outstanding_bytes -= what.bytes;
  outstanding_bytes_ -= what.bytes;
}

void SendQueue::retry_most_urgent(Owner& owner) {
  while (!owner.deferred.empty()) {
    const uint32_t partition = partition_of(owner.deferred.front());
    pop(owner.deferred);
    partitions_[partition].in_deferred_heap = false;
    if (partitions_[partition].phase != Phase::kDeferred) continue;
    make_ready(partition);
    return;
  }
}

void SendQueue::retry_due(Owner& owner, absl::Duration now) {
  std::erase_if(owner.deferred, [&](uint64_t entry) {
    const uint32_t partition = partition_of(entry);
    PartitionState& state = partitions_[partition];
    const bool waits = state.phase == Phase::kDeferred;
    if (waits && state.retry_at > now) return false;
    state.in_deferred_heap = false;
    if (waits) make_ready(partition);
    return true;
  });
  std::make_heap(owner.deferred.begin(), owner.deferred.end(), std::greater<>());
}

}  // namespace gleaner::session
