// Slots holds values that are used again, each named by an index. Once warm it allocates no memory. Belongs to one
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace gleaner {

template <typename T>
class Slots {
 public:
  // Returns the index of an unused slot, with the value that it had when it was given back. If there is none, adds one,
  // made from `blank`. References to other slots stay valid.
  template <typename... Blank>
  uint32_t take(const Blank&... blank) {
    if (unused_.empty()) {
      unused_.push_back(size());
      slots_.emplace_back(blank...);
      unused_.reserve(slots_.size());
    }
    const uint32_t index = unused_.back();
    unused_.pop_back();
    return index;
  }
  void give_back(uint32_t index) { unused_.push_back(index); }

  T& operator[](uint32_t index) { return slots_[index]; }
  const T& operator[](uint32_t index) const { return slots_[index]; }
  // Returns the number of slots, used and unused.
  uint32_t size() const { return static_cast<uint32_t>(slots_.size()); }
  uint32_t in_use() const { return static_cast<uint32_t>(slots_.size() - unused_.size()); }

 private:
  std::deque<T> slots_;
  std::vector<uint32_t> unused_;
};

}  // namespace gleaner
