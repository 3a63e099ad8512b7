// AckBatches gathers acknowledgements of results per owner into the payloads of kAck frames. Keys are written directly
// into a pool buffer, so a batch leaves without a copy.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/wire/frame.h"

namespace gleaner::session {

class AckBatches {
 public:
  static constexpr uint32_t kMaxKeys = 64;

  explicit AckBatches(BufferPool* pool) : pool_(pool) {}

  void resize(size_t owners) { batches_.resize(owners); }

  // Adds a key to the owner's batch. Returns true when the batch is full; the caller must then take it.
  bool add(uint32_t owner, const wire::PartitionKey& key) {
    Batch& batch = batches_[owner];
    if (batch.keys == 0) batch.payload = pool_->take(kMaxKeys * sizeof(key));
    std::memcpy(batch.payload.bytes().data() + batch.keys * sizeof(key), &key, sizeof(key));
    ++keys_;
    return ++batch.keys == kMaxKeys;
  }

  // Returns the payload for this owner, and empties its batch. Empty if there is nothing to acknowledge.
  Buffer take(uint32_t owner) {
    Batch& batch = batches_[owner];
    keys_ -= batch.keys;
    const Buffer payload = std::exchange(batch.payload, {});
    return payload.slice(0, std::exchange(batch.keys, 0) * sizeof(wire::PartitionKey));
  }

  bool empty() const { return keys_ == 0; }
  bool empty(uint32_t owner) const { return batches_[owner].keys == 0; }
  size_t owners() const { return batches_.size(); }

 private:
  struct Batch {
    uint32_t keys = 0;
    Buffer payload;
  };
  BufferPool* const pool_;
  std::vector<Batch> batches_;
  uint64_t keys_ = 0;  // in all batches
};

}  // namespace gleaner::session
