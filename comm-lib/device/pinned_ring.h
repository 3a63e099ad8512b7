// PinnedRing gives out parts of a fixed area of pinned memory, *slots*, in the order of their addresses, and from the
// start again after the end. Slots come back in any order; a slot's memory is given out again when it and all slots
// that were given out before it are back. Allocates only when it is made. Belongs to one thread, and does not touch the
// memory.
//
// Example, an area of 8 granules: A takes 3, B takes 3. B comes back, and 2 are free, since A is older. A comes back,
// and all 8 are free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/bytes.h"

namespace gleaner::device {

class PinnedRing {
 public:
  // `area` must outlive the ring. Slots begin at multiples of `granule_bytes` from its start, and take up whole
  // granules; a rest of the area that is less than a granule stays unused.
  PinnedRing(MutableBytes area, size_t granule_bytes);

  // Returns a slot of `bytes` bytes (1 or more); nullopt if that many consecutive bytes are not free now. It may
  // succeed after a give_back() if `bytes` is at most capacity().
  std::optional<MutableBytes> take(size_t bytes);
  // `slot` is what take() returned. FailedPrecondition: it is not in use, so it was given back before or is no slot.
  [[nodiscard]] absl::Status give_back(MutableBytes slot);

  size_t capacity() const { return granules() * granule_bytes_; }
  // Returns the bytes that are not in use and not held back by an older slot.
  size_t free_bytes() const { return (granules() - used_) * granule_bytes_; }

 private:
  enum class State : uint8_t { kNoSlot, kInUse, kGivenBack };
  struct Granule {
    uint32_t length = 0;  // of the slot that begins here, in granules
    State state = State::kNoSlot;
  };
  size_t granules() const { return slots_.size(); }
  void begin_slot(size_t length, State state);
  void release_oldest();

  const MutableBytes area_;
  const size_t granule_bytes_;
  std::vector<Granule> slots_;  // by their first granule
  size_t next_ = 0;             // the granule at which the next slot begins
  size_t oldest_ = 0;           // the granule at which the oldest slot begins
  size_t used_ = 0;             // granules from oldest_ to next_
};

}  // namespace gleaner::device
