// Staging is the pinned memory through which pieces of tensors go between a GPU and the network: a ring, and for the
// rare piece that must go on although the ring is full, memory of its own, which is kept and used again. Belongs to one
// thread at a time, and does not touch the memory. Once warm it allocates none.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "comm-lib/device/device.h"
#include "comm-lib/device/pinned_ring.h"

namespace gleaner::device {

class Staging {
 public:
  // `device` must outlive the staging memory. ResourceExhausted, also of take(): no memory can be pinned.
  static absl::StatusOr<std::unique_ptr<Staging>> create(Device* device, size_t ring_bytes);

  // Returns a slot of `bytes` bytes (1 or more). If the ring has no room, returns an empty slot, or, if the caller
  // `must` have one, a slot beside the ring.
  struct Slot {
    MutableBytes memory;
    bool is_beside = false;
  };
  absl::StatusOr<Slot> take(size_t bytes, bool must);
  void give_back(MutableBytes slot);

  // Returns the memory of the ring, which stays at its place.
  MutableBytes ring() const { return ring_memory_->bytes(); }
  // Returns the bytes of memory beside the ring, used and unused.
  size_t bytes_beside() const;

 private:
  struct Block {
    std::unique_ptr<PinnedMemory> memory;
    bool is_used = false;
  };
  Staging(Device* device, std::unique_ptr<PinnedMemory> ring);
  absl::StatusOr<MutableBytes> take_beside(size_t bytes);

  Device* const device_;
  const std::unique_ptr<PinnedMemory> ring_memory_;
  PinnedRing ring_;
  std::vector<Block> beside_;
};

}  // namespace gleaner::device
