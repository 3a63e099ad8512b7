// Fifo is a queue whose memory stays for reuse: once warm, push() and pop() allocate nothing.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace gleaner::executor {

template <typename T>
class Fifo {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Returns the i-th element from the front. Needs i < size().
  const T& operator[](size_t i) const { return entries_[(first_ + i) & (entries_.size() - 1)]; }
  const T& front() const { return (*this)[0]; }

  void push(T value) {
    if (size_ == entries_.size()) grow();
    entries_[(first_ + size_++) & (entries_.size() - 1)] = std::move(value);
  }
  T pop() {
    T value = std::exchange(entries_[first_], T());
    first_ = (first_ + 1) & (entries_.size() - 1);
    --size_;
    return value;
  }

 private:
  void grow() {
    std::vector<T> larger(entries_.empty() ? 16 : 2 * entries_.size());
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move(entries_[(first_ + i) & (entries_.size() - 1)]);
    entries_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> entries_;  // a ring whose size is zero or a power of two
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace gleaner::executor
