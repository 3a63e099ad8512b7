// Acknowledgements gathers the acknowledgements of results, and sends them to each owner in batches (kAck).
//
// The key of an acknowledgement tells an owner how far this worker is with a partition (results.h). A batch leaves when
// it is full, with flush(), which the session calls before each push to the same owner, or with flush_connected(). Keys
// are written directly into a pool buffer, so a batch leaves without a copy.
//
// Pure; belongs to one thread. Once warm it allocates no memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "comm-lib/exchange/piece_request.h"
#include "comm-lib/session/frames.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::session {

using exchange::Actions;

class Acknowledgements {
 public:
  static constexpr uint32_t kMaxKeys = 64;  // of a batch

  // `pool` must outlive this object.
  Acknowledgements(const Identity& identity, BufferPool* pool) : identity_(identity), pool_(pool) {}

  // Follows a plan. Batches must be empty, since a batch belongs to the plan under which its keys were added.
  void apply(const plan::Plan& plan) {
    epoch_ = plan.epoch;
    batches_.resize(plan.members.size());
  }

  // Adds a key for the owner. Sends the batch if it is full.
  void add(uint32_t owner, const wire::PartitionKey& key, Actions& actions) {
    Batch& batch = batches_[owner];
    if (batch.keys == 0) batch.payload = pool_->take(kMaxKeys * sizeof(key));
    std::memcpy(batch.payload.bytes().data() + batch.keys * sizeof(key), &key, sizeof(key));
    ++keys_;
    if (++batch.keys == kMaxKeys) flush(owner, actions);
  }

  // Sends the owner's batch, if it has a key.
  void flush(uint32_t owner, Actions& actions) {
    if (batches_[owner].keys == 0) return;
    Buffer payload = take(owner);
    const wire::Header header = make_header(identity_, epoch_, wire::FrameType::kAck, payload);
    actions.sends.push_back({owner, header, std::move(payload)});
  }

  // Sends the batches of all owners for which `is_connected` is true.
  template <typename IsConnected>
  void flush_connected(const IsConnected& is_connected, Actions& actions) {
    for (uint32_t owner = 0; keys_ > 0 && owner < batches_.size(); ++owner) {
      if (is_connected(owner)) flush(owner, actions);
    }
  }

  // Forgets the batch of one owner, or of all.
  void drop(uint32_t owner) { take(owner); }
  void drop_all() {
    for (uint32_t owner = 0; keys_ > 0 && owner < batches_.size(); ++owner) drop(owner);
  }

  bool empty() const { return keys_ == 0; }
  // Returns whether no owner for which `is_connected` is true has a batch with keys.
  template <typename IsConnected>
  bool empty_for(const IsConnected& is_connected) const {
    for (uint32_t owner = 0; keys_ > 0 && owner < batches_.size(); ++owner) {
      if (batches_[owner].keys > 0 && is_connected(owner)) return false;
    }
    return true;
  }

 private:
  struct Batch {
    uint32_t keys = 0;
    Buffer payload;
  };

  // Empties the owner's batch and returns its payload.
  Buffer take(uint32_t owner) {
    Batch& batch = batches_[owner];
    keys_ -= batch.keys;
    const Buffer payload = std::exchange(batch.payload, {});
    return payload.slice(0, std::exchange(batch.keys, 0) * sizeof(wire::PartitionKey));
  }

  const Identity identity_;
  BufferPool* const pool_;
  uint32_t epoch_ = 0;          // of the plan in force
  std::vector<Batch> batches_;  // by owner
  uint64_t keys_ = 0;           // in all batches
};

}  // namespace gleaner::session
