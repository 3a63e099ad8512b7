// SendSlots holds the slots of a connection's send queue: pieces of registered memory, each of which takes one packet
// until the adapter has sent it. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/buffer.h"
#include "common/transport/rdma/packet.h"
#include "common/transport/rdma/verbs.h"

namespace gleaner::transport::rdma {

class SendSlots {
 public:
  static constexpr size_t kCount = 32;
  static constexpr size_t kMemory = kCount * kSlotBytes;

  // `memory`: kMemory bytes of registered memory, which must outlive this object; `key`: its local key.
  SendSlots(MutableBytes memory, uint32_t key) : memory_(memory), key_(key) {
    for (size_t i = 0; i < kCount; ++i) free_[i] = static_cast<uint16_t>(i);
  }

  bool has_free() const { return free_count_ > 0; }
  // Returns the slot that the next take() returns. Needs has_free().
  uint16_t next() const { return free_[free_count_ - 1]; }
  uint16_t take() { return free_[--free_count_]; }
  void give_back(uint16_t slot) { free_[free_count_++] = slot; }

  MutableBytes memory_of(uint16_t slot) const { return memory_.subspan(slot * kSlotBytes, kSlotBytes); }
  // Returns the scatter-gather entry of the first `bytes` bytes of the slot.
  ibv_sge piece(uint16_t slot, size_t bytes) const {
    return {reinterpret_cast<uint64_t>(memory_of(slot).data()), static_cast<uint32_t>(bytes), key_};
  }

 private:
  const MutableBytes memory_;
  const uint32_t key_;
  std::array<uint16_t, kCount> free_;  // a stack
  size_t free_count_ = kCount;
};

}  // namespace gleaner::transport::rdma
