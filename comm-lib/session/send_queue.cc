#include "comm-lib/session/send_queue.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/plan/partitioner.h"
#include "common/plan/successor.h"

namespace gleaner::session {
namespace {

constexpr uint64_t kMaxGrowth = uint64_t{1} << 16;
constexpr uint32_t kMaxDoublings = 6;
constexpr absl::Duration kShortestStall = absl::Milliseconds(10);
constexpr absl::Duration kLongestStall = absl::Milliseconds(50);

}  // namespace

SendQueue::SendQueue(uint64_t window_bytes, uint32_t self, absl::Duration stall_after, absl::Duration defer_retry)
    : asked_bytes_(window_bytes), self_(self), asked_stall_after_(stall_after), defer_retry_(defer_retry) {}

bool SendQueue::has_room(uint32_t owner, uint64_t bytes) const {
  if (owner == self_) return true;
  return window_used_bytes() + bytes <= window_bytes_ * growth_;
}

uint64_t SendQueue::window_used_bytes() const {
  return bytes_on_the_way_ - (self_ < owners_.size() ? owners_[self_].bytes_on_the_way : 0);
}

Urgency SendQueue::urgency(uint32_t partition) const {
  return {partitions_[partition].deferral_number, plan_->tensors[plan_->partitions[partition].tensor].priority,
          partition};
}

void SendQueue::apply(const plan::Plan* plan) {
  std::vector<uint32_t> moved;
  if (plan_ != nullptr) moved = take_moved(*plan);
  plan_ = plan;
  partitions_.resize(plan->partitions.size());
  if (owners_.size() != plan->members.size()) {
    owners_.resize(plan->members.size());
    tournament_.reset(owners_.size());
  }
  list_owned();
  set_window();
  set_credits();
  for (const uint32_t partition : moved) make_ready(partition);
  refresh_all();
}

// Takes the partitions that are not idle, and that `later` moves to another owner, out of their phases. Returns them.
std::vector<uint32_t> SendQueue::take_moved(const plan::Plan& later) {
  std::vector<uint32_t> moved;
  const auto moves = [&](uint32_t partition) { return plan::has_moved(later.partitions[partition], plan_->epoch); };
  for (uint32_t i = 0; i < partitions_.size(); ++i) {
    const Phase phase = partitions_[i].phase;
    if (phase == Phase::kIdle || !moves(i)) continue;
    moved.push_back(i);
    const uint64_t bytes = plan_->push_bytes(plan_->partitions[i]);
    if (phase == Phase::kSent || phase == Phase::kArrived) outstanding_bytes_ -= bytes;
    if (phase == Phase::kSent) {
      owners_[plan_->partitions[i].owner].bytes_on_the_way -= bytes;
      bytes_on_the_way_ -= bytes;
    }
  }
  if (moved.empty()) return moved;
  for (Owner& owner : owners_) {
    uint32_t next = std::exchange(owner.first_sent, kNone);
    while (next != kNone) {
      const uint32_t partition = next;
      next = partitions_[partition].next_sent;
      if (!moves(partition)) append_sent(owner, partition);
    }
    std::erase_if(owner.ready, [&](const Urgency& waiting) { return moves(waiting.partition); });
    std::make_heap(owner.ready.begin(), owner.ready.end(), std::greater<>());
    std::erase_if(owner.deferred, moves);
  }
  for (const uint32_t partition : moved) partitions_[partition] = {};
  return moved;
}

void SendQueue::list_owned() {
  for (Owner& owner : owners_) owner.owned.clear();
  for (uint32_t i = 0; i < plan_->partitions.size(); ++i) owners_[plan_->partitions[i].owner].owned.push_back(i);
  for (Owner& owner : owners_) {
    owner.ready.reserve(owner.owned.size());
    owner.deferred.reserve(owner.owned.size());
  }
}

void SendQueue::append_sent(Owner& owner, uint32_t partition) {
  partitions_[partition].next_sent = kNone;
  (owner.first_sent == kNone ? owner.first_sent : partitions_[owner.last_sent].next_sent) = partition;
  owner.last_sent = partition;
}

void SendQueue::set_round_trip(absl::Duration round_trip) {
  if (absl::AbsDuration(round_trip - round_trip_) < window_time() / 8) return;
  round_trip_ = round_trip;
  set_window();
  set_credits();
  refresh_all();
}

void SendQueue::set_window() {
  window_bytes_ = plan::window_bytes(*plan_, self_, asked_bytes_, absl::ToDoubleSeconds(round_trip_));
  stall_after_ = asked_stall_after_;
  if (stall_after_ > absl::ZeroDuration()) return;
  stall_after_ = std::max(std::clamp(2 * window_time(), kShortestStall, kLongestStall), 1.5 * window_time());
}

absl::Duration SendQueue::window_time() const {
  return absl::Seconds(static_cast<double>(window_bytes_) * 8 / plan_->members[self_].bits_per_second);
}

void SendQueue::set_credits() {
  double total = 0;
  for (const plan::Partition& partition : plan_->partitions) total += plan_->push_bytes(partition);
  for (Owner& owner : owners_) {
    double bytes = 0;
    uint64_t largest = 0;
    for (uint32_t partition : owner.owned) {
      const uint64_t pushed = plan_->push_bytes(plan_->partitions[partition]);
      bytes += static_cast<double>(pushed);
      largest = std::max(largest, pushed);
    }
    const double share = total > 0 ? bytes / total : 0;
    owner.credit_bytes = std::max(2 * largest, static_cast<uint64_t>(2 * share * static_cast<double>(window_bytes_)));
  }
}

void SendQueue::make_ready(uint32_t partition) {
  const uint32_t owner = plan_->partitions[partition].owner;
  std::vector<Urgency>& ready = owners_[owner].ready;
  partitions_[partition].phase = Phase::kReady;
  ready.push_back(urgency(partition));
  std::push_heap(ready.begin(), ready.end(), std::greater<>());
  refresh(owner);
}

std::optional<uint32_t> SendQueue::next(absl::Duration now) {
  if (tournament_.best() == Tournament::kOut) return std::nullopt;
  const uint32_t partition = tournament_.best().partition;
  const uint64_t bytes = plan_->push_bytes(plan_->partitions[partition]);
  if (!has_room(tournament_.best_player(), bytes)) return std::nullopt;
  if (bytes_on_the_way_ == 0) last_progress_ = now;
  const uint32_t index = tournament_.best_player();
  Owner& owner = owners_[index];
  std::pop_heap(owner.ready.begin(), owner.ready.end(), std::greater<>());
  owner.ready.pop_back();
  partitions_[partition].phase = Phase::kSent;
  append_sent(owner, partition);
  if (owner.bytes_on_the_way == 0) owner.last_answer = now;
  owner.bytes_on_the_way += bytes;
  bytes_on_the_way_ += bytes;
  outstanding_bytes_ += bytes;
  refresh(index);
  return partition;
}

bool SendQueue::defer(uint32_t partition, absl::Duration now) {
  SendState& state = partitions_[partition];
  if (state.phase == Phase::kSent) arrive(partition);
  if (state.phase != Phase::kArrived) return false;
  leave_phase(partition);
  state.phase = Phase::kDeferred;
  state.retry_at = now + defer_retry_ * (1 << std::min(state.deferrals, kMaxDoublings));
  ++state.deferrals;
  state.deferral_number = ++last_deferral_number_;
  const uint32_t owner = plan_->partitions[partition].owner;
  owners_[owner].deferred.push_back(partition);
  owners_[owner].last_answer = now;
  refresh(owner);
  return true;
}

void SendQueue::arrive(uint32_t partition) {
  Owner& owner = owners_[plan_->partitions[partition].owner];
  for (uint32_t arrived = kNone; arrived != partition;) {
    arrived = owner.first_sent;
    const uint64_t bytes = plan_->push_bytes(plan_->partitions[arrived]);
    owner.first_sent = partitions_[arrived].next_sent;
    owner.bytes_on_the_way -= bytes;
    bytes_on_the_way_ -= bytes;
    partitions_[arrived].phase = Phase::kArrived;
  }
}

void SendQueue::finish(uint32_t partition, absl::Duration now) {
  if (partitions_[partition].phase == Phase::kSent) arrive(partition);
  leave_phase(partition);
  partitions_[partition] = {};
  last_progress_ = now;
  const uint32_t owner = plan_->partitions[partition].owner;
  owners_[owner].last_answer = now;
  owners_[owner].growth = 1;
  retry_most_urgent(owner);
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
  // No partition that was sent over this connection is on the way any more: each has arrived or is lost.
  if (owners_[owner].first_sent != kNone) arrive(owners_[owner].last_sent);
  for (uint32_t partition : owners_[owner].owned) {
    if (partitions_[partition].phase != Phase::kArrived) continue;
    leave_phase(partition);
    make_ready(partition);
  }
  refresh(owner);
}

bool SendQueue::tick(absl::Duration now) {
  bool held_back = false, grew = false;
  for (uint32_t i = 0; i < owners_.size(); ++i) {
    if (!owners_[i].deferred.empty()) retry_due(i, now);
    held_back = held_back || (owners_[i].connected && !owners_[i].ready.empty());
    grew = grow_stalled_owner(i, now) || grew;
  }
  if (!held_back || bytes_on_the_way_ == 0 || now - last_progress_ < stall_after_ || growth_ == kMaxGrowth) {
    return grew;
  }
  growth_ *= 2;
  last_progress_ = now;
  refresh_all();
  return true;
}

// See "Stalls" in the header. Results of other owners do not show that this owner can go on with its credit.
bool SendQueue::grow_stalled_owner(uint32_t index, absl::Duration now) {
  Owner& owner = owners_[index];
  const bool waits = owner.connected && !owner.ready.empty() && owner.bytes_on_the_way > 0 && !has_credit(owner);
  if (!waits || now - owner.last_answer < stall_after_ || owner.growth == kMaxGrowth) return false;
  owner.growth *= 2;
  owner.last_answer = now;
  refresh(index);
  return true;
}

void SendQueue::clear() {
  for (SendState& state : partitions_) state = {};
  for (Owner& owner : owners_) {
    owner.ready.clear();
    owner.deferred.clear();
    owner.first_sent = kNone;
    owner.bytes_on_the_way = 0;
    owner.growth = 1;
  }
  bytes_on_the_way_ = 0;
  outstanding_bytes_ = 0;
  growth_ = 1;
  refresh_all();
}

void SendQueue::refresh(uint32_t index) {
  const Owner& owner = owners_[index];
  const bool may_send = owner.connected && !owner.ready.empty() && has_credit(owner);
  tournament_.set(index, may_send ? owner.ready.front() : Tournament::kOut);
}

bool SendQueue::has_credit(const Owner& owner) const {
  const uint64_t bytes = plan_->push_bytes(plan_->partitions[owner.ready.front().partition]);
  return owner.bytes_on_the_way + bytes <= owner.credit_bytes * std::max(growth_, owner.growth);
}

void SendQueue::refresh_all() {
  for (uint32_t i = 0; i < owners_.size(); ++i) refresh(i);
}

void SendQueue::leave_phase(uint32_t partition) {
  const plan::Partition& what = plan_->partitions[partition];
  Owner& owner = owners_[what.owner];
  switch (partitions_[partition].phase) {
    case Phase::kArrived:
      outstanding_bytes_ -= plan_->push_bytes(what);
      break;
    case Phase::kReady:  // rare: the answer to a push over an earlier connection
      std::erase(owner.ready, urgency(partition));
      std::make_heap(owner.ready.begin(), owner.ready.end(), std::greater<>());
      break;
    case Phase::kDeferred:  // rare: the answer to another copy of the push
      std::erase(owner.deferred, partition);
      break;
    case Phase::kIdle:
    case Phase::kSent:  // only arrive() takes a partition out of it
      break;
  }
}

void SendQueue::retry_most_urgent(uint32_t index) {
  std::vector<uint32_t>& deferred = owners_[index].deferred;
  if (deferred.empty()) return;
  const auto priority_then_position = [this](uint32_t a, uint32_t b) {
    const int32_t of_a = urgency(a).priority, of_b = urgency(b).priority;
    return of_a != of_b ? of_a < of_b : a < b;
  };
  const auto chosen = std::min_element(deferred.begin(), deferred.end(), priority_then_position);
  const uint32_t partition = *chosen;
  deferred.erase(chosen);
  make_ready(partition);
}

void SendQueue::retry_due(uint32_t index, absl::Duration now) {
  std::erase_if(owners_[index].deferred, [&](uint32_t partition) {
    if (partitions_[partition].retry_at > now) return false;
    make_ready(partition);
    return true;
  });
}

}  // namespace gleaner::session
