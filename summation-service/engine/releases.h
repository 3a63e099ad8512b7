// Releases records which results of an owner every worker has. Results are numbered in the order in which they are
// made, and released in any order. The owner tells workers the number of the first result that is not released; workers
// may drop all results before it.
#pragma once

#include <cstdint>
#include <vector>

namespace gleaner::engine {

class Releases {
 public:
  // Returns the number of a new result. Numbers wrap around.
  uint32_t add() {
    if (next_ - first_ == released_.size()) grow();
    at(next_) = 0;
    return next_++;
  }

  // Releases a result: every worker has it, or its partition has moved to another owner.
  void release(uint32_t number) {
    at(number) = 1;
    while (first_ != next_ && at(first_) != 0) ++first_;
  }

  uint32_t first_unreleased() const { return first_; }

 private:
  uint8_t& at(uint32_t number) { return released_[number & (released_.size() - 1)]; }

  void grow() {
    std::vector<uint8_t> larger(2 * released_.size());
    for (uint32_t number = first_; number != next_; ++number) larger[number & (larger.size() - 1)] = at(number);
    released_.swap(larger);
  }

  std::vector<uint8_t> released_ = std::vector<uint8_t>(64);  // a ring, whose size is a power of two
  uint32_t first_ = 0;
  uint32_t next_ = 0;
};

}  // namespace gleaner::engine
