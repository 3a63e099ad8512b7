// MemoryBudget limits the memory for sums, retained results and waiting contributions, and counts how much of it is
// reserved. All sizes are bytes of whole memory blocks (block_size()).
#pragma once

#include <cstdint>

namespace gleaner::engine {

class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t cap) : cap_(cap) {}  // 0: no cap

  // Returns whether `bytes` could be reserved if nothing else was.
  bool can_ever_fit(uint64_t bytes) const { return cap_ == 0 || bytes <= cap_; }

  // Returns whether `bytes` more can be reserved now.
  bool has_room(uint64_t bytes) const { return can_ever_fit(reserved_ + bytes); }
  // Reserves `bytes`. Needs has_room().
  void reserve(uint64_t bytes) { reserved_ += bytes; }
  // Gives back bytes that were reserved before.
  void release(uint64_t bytes) { reserved_ -= bytes; }

  uint64_t cap() const { return cap_; }
  uint64_t reserved() const { return reserved_; }

 private:
  const uint64_t cap_;
  uint64_t reserved_ = 0;
};

}  // namespace gleaner::engine
