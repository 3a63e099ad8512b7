#include "common/transport/shm/ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gleaner::transport::shm {
namespace {

constexpr uint64_t round_up(uint64_t position) { return (position + kAlignment - 1) / kAlignment * kAlignment; }
constexpr uint64_t round_down(uint64_t position) { return position / kAlignment * kAlignment; }
// A spinning writer goes on once this fraction of its ring is free: one part in kLeastRoom.
constexpr size_t kLeastRoom = 16;

constexpr bool is_odd(uint32_t count) { return count % 2 == 1; }

void start_waiting(std::atomic<uint32_t>& waits) {
  const uint32_t count = waits.load(std::memory_order_relaxed);
  if (!is_odd(count)) waits.store(count + 1, std::memory_order_seq_cst);
}

void stop_waiting(std::atomic<uint32_t>& waits) {
  const uint32_t count = waits.load(std::memory_order_relaxed);
  if (is_odd(count)) waits.store(count + 1, std::memory_order_relaxed);
}

// Returns whether the peer waits and was not woken for this wait yet.
bool is_to_be_woken(const std::atomic<uint32_t>& waits, uint32_t& woken) {
  const uint32_t count = waits.load(std::memory_order_seq_cst);
  return is_odd(count) && std::exchange(woken, count) != count;
}

}  // namespace

// Before a side sleeps it stores that it waits, then loads the other's position. The other side stores its position,
// then loads whether the first one waits. All four accesses are sequentially consistent, so at least one side sees the
// store of the other, and no wake-up is lost.

std::optional<size_t> Writer::room(size_t wanted) {
  if (ring_.size() - (written_ - taken_seen_) < wanted) taken_seen_ = peer_->taken.load(std::memory_order_acquire);
  const uint64_t used = written_ - taken_seen_;
  if (used > ring_.size()) return std::nullopt;
  return ring_.size() - used;
}

void Writer::append(ConstBytes bytes) {
  const size_t first = std::min(bytes.size(), ring_.size() - at_);
  std::memcpy(ring_.data() + at_, bytes.data(), first);
  if (first < bytes.size()) std::memcpy(ring_.data(), bytes.data() + first, bytes.size() - first);
  written_ += bytes.size();
  at_ = at_ + bytes.size() < ring_.size() ? at_ + bytes.size() : bytes.size() - first;
}

// The gap always fits: the ring's size and the positions in peer_->taken are multiples of kAlignment.
void Writer::align() {
  const uint64_t gap = round_up(written_) - written_;
  written_ += gap;
  at_ = at_ + gap < ring_.size() ? at_ + gap : 0;
}

bool Writer::publish() {
  published_ = written_;
  own_->written.store(written_, std::memory_order_seq_cst);
  return is_to_be_woken(peer_->waits_for_data, woken_);
}

bool Writer::wait_for_room() {
  start_waiting(own_->waits_for_room);
  taken_seen_ = peer_->taken.load(std::memory_order_seq_cst);
  if (written_ - taken_seen_ > ring_.size() / 2) return true;
  wait_no_more();
  return false;
}

void Writer::wait_no_more() { stop_waiting(own_->waits_for_room); }

// A writer that waits has published all its bytes, so own_->written is its position.
bool Writer::has_room() const {
  if (!is_odd(own_->waits_for_room.load(std::memory_order_relaxed))) return false;
  const uint64_t used = own_->written.load(std::memory_order_relaxed) - peer_->taken.load(std::memory_order_acquire);
  return used <= ring_.size() - ring_.size() / kLeastRoom;
}

std::optional<size_t> Reader::available(size_t wanted) {
  if (written_seen_ - taken_ < wanted) written_seen_ = peer_->written.load(std::memory_order_acquire);
  const uint64_t bytes = written_seen_ - taken_;
  if (bytes > ring_.size()) return std::nullopt;
  return bytes;
}

void Reader::take(MutableBytes to) {
  const size_t first = std::min(to.size(), ring_.size() - at_);
  std::memcpy(to.data(), ring_.data() + at_, first);
  if (first < to.size()) std::memcpy(to.data() + first, ring_.data(), to.size() - first);
  taken_ += to.size();
  at_ = at_ + to.size() < ring_.size() ? at_ + to.size() : to.size() - first;
}

void Reader::align() {
  const uint64_t gap = round_up(taken_) - taken_;
  taken_ += gap;
  at_ = at_ + gap < ring_.size() ? at_ + gap : 0;
}

bool Reader::release() {
  released_ = round_down(taken_);
  own_->taken.store(released_, std::memory_order_seq_cst);
  if (written_seen_ - released_ > ring_.size() / 2) return false;  // more than half is full, as far as this side knows
  return is_to_be_woken(peer_->waits_for_room, woken_);
}

bool Reader::wait_for_data() {
  start_waiting(own_->waits_for_data);
  return peer_->written.load(std::memory_order_seq_cst) == taken_;
}

void Reader::wait_no_more() { stop_waiting(own_->waits_for_data); }

}  // namespace gleaner::transport::shm
