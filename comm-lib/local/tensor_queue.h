// TensorQueue is a queue of tensors, which has each tensor at most once. Allocates only in reserve(). Belongs to one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gleaner::local {

class TensorQueue {
 public:
  // Makes room for `tensors` tensors, at least as many as before. Keeps the queued tensors.
  void reserve(size_t tensors) {
    std::vector<uint32_t> ring(tensors);
    for (size_t i = 0; i < size_; ++i) ring[i] = ring_[(head_ + i) % ring_.size()];
    ring_ = std::move(ring);
    head_ = 0;
  }

  bool empty() const { return size_ == 0; }
  uint32_t front() const { return ring_[head_]; }
  void push(uint32_t tensor) { ring_[(head_ + size_++) % ring_.size()] = tensor; }
  void pop() {
    head_ = (head_ + 1) % ring_.size();
    --size_;
  }

 private:
  std::vector<uint32_t> ring_;
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace gleaner::local
