// SessionRig: a session for tests, with short functions that act as its owners and that read what the session sends.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <ostream>
#include <vector>

#include "comm-lib/session/session.h"
#include "tests/unit/engine/plans.h"

namespace gleaner::testing {

inline constexpr uint64_t kJob = 7;
inline constexpr absl::Duration kStall = absl::Milliseconds(50);
inline constexpr absl::Duration kRetry = absl::Milliseconds(2);

struct Key {
  uint32_t tensor = 0;
  uint32_t partition = 0;
  uint64_t step = 0;
  friend bool operator==(const Key&, const Key&) = default;
};

class SessionRig {
 public:
  // The session is that of worker 1. It is connected to every owner, unless `connected` is false.
  explicit SessionRig(const PlanSpec& spec, uint64_t window_bytes = 1 << 20, bool connected = true)
      : plan(build_plan(spec)),
        session({.job = kJob, .worker = 1, .window_bytes = window_bytes, .stall_after = kStall, .defer_retry = kRetry},
                &pool) {
    absl::Status status = session.apply(plan, now, actions);
    for (uint32_t owner = 0; connected && owner < plan->members.size(); ++owner) connect(owner);
  }

  // Each of the following functions clears `actions` first.
  absl::Status apply(const PlanSpec& spec) {
    clear();
    auto next = build_plan(spec);
    absl::Status status = session.apply(next, now, actions);
    if (status.ok()) plan = next;
    return status;
  }
  void connect(uint32_t owner) {
    clear();
    session.on_connected(owner, now, actions);
  }
  void reconnect(uint32_t owner) {
    session.on_disconnected(owner);
    connect(owner);
  }
  void tick(absl::Duration after = absl::ZeroDuration()) {
    clear();
    session.on_tick(now += after, actions);
  }
  // Starts a push_pull from the rig's memory for the tensor; in place, unless `output` is given.
  absl::Status start(uint32_t tensor, ReduceOp op = ReduceOp::kSum, MutableBytes output = {}) {
    clear();
    std::vector<std::byte>& memory = memory_of(tensor);
    return session.start({.id = 100 + tensor,
                          .tensor = tensor,
                          .op = op,
                          .input = Buffer::borrow(memory),
                          .output = output.empty() ? MutableBytes(memory) : output},
                         now, actions);
  }
  absl::Status result(const Key& key, std::byte fill = std::byte{0x11}, uint32_t epoch = 1) {
    wire::Header what = header(wire::FrameType::kResult, key);
    what.epoch = epoch;
    Buffer payload = pool.take(partition(key).bytes);
    std::ranges::fill(payload.bytes(), fill);
    return deliver(what, std::move(payload));
  }
  // Delivers an owner's Release: every worker has the owner's results with numbers below `below`.
  absl::Status release(uint32_t owner, uint32_t below, const std::vector<wire::PartitionKey>& keys = {}) {
    wire::Header what;
    what.type = wire::FrameType::kRelease;
    what.job = kJob;
    what.epoch = plan->epoch;
    what.sender = owner;
    what.confirmed = below;
    Buffer payload = pool.take(keys.size() * sizeof(wire::PartitionKey));
    if (!keys.empty()) std::memcpy(payload.bytes().data(), keys.data(), payload.size());
    return deliver(what, std::move(payload));
  }
  absl::Status defer(const Key& key) { return deliver(header(wire::FrameType::kDefer, key), {}); }
  absl::Status deliver(wire::Header what, Buffer payload) {
    clear();
    what.payload_bytes = static_cast<uint32_t>(payload.size());
    return session.on_frame(what.sender, what, std::move(payload), now, actions);
  }

  wire::Header header(wire::FrameType type, const Key& key) const {
    wire::Header header;
    header.type = type;
    header.data_type = plan->tensors[key.tensor].type;
    header.job = kJob;
    header.epoch = plan->epoch;
    header.sender = partition(key).owner;
    header.tensor = key.tensor;
    header.partition = key.partition;
    header.step = key.step;
    return header;
  }
  const plan::Partition& partition(const Key& key) const { return plan->partitions_of(key.tensor)[key.partition]; }
  std::vector<std::byte>& memory_of(uint32_t tensor) {
    if (memory_.size() <= tensor) memory_.resize(tensor + 1);
    memory_[tensor].resize(plan->tensors[tensor].bytes());
    return memory_[tensor];
  }

  // Returns the partitions that the last call pushed.
  std::vector<Key> pushed() const {
    std::vector<Key> keys;
    for (const exchange::Send& send : actions.sends) {
      if (send.header.type != wire::FrameType::kPush) continue;
      keys.push_back({send.header.tensor, send.header.partition, send.header.step});
    }
    return keys;
  }
  std::vector<wire::PartitionKey> acknowledged(uint32_t owner) const {
    std::vector<wire::PartitionKey> keys;
    for (const exchange::Send& send : actions.sends) {
      if (send.header.type != wire::FrameType::kAck || send.member != owner) continue;
      const size_t known = keys.size();
      keys.resize(known + send.payload.size() / sizeof(wire::PartitionKey));
      std::memcpy(keys.data() + known, send.payload.bytes().data(), send.payload.size());
    }
    return keys;
  }
  std::vector<uint64_t> done() const {
    std::vector<uint64_t> ids;
    for (const exchange::Done& done : actions.done) ids.push_back(done.id);
    return ids;
  }
  void clear() {
    actions.sends.clear();
    actions.done.clear();
    actions.has_progressed = false;
    actions.refused = absl::OkStatus();
  }

  absl::Duration now = absl::Seconds(1);
  BufferPool pool;
  std::shared_ptr<const plan::Plan> plan;
  exchange::Actions actions;
  session::Session session;

 private:
  std::deque<std::vector<std::byte>> memory_;  // by tensor
};

inline void PrintTo(const Key& key, std::ostream* out) {
  *out << "tensor " << key.tensor << " partition " << key.partition << " step " << key.step;
}

}  // namespace gleaner::testing
