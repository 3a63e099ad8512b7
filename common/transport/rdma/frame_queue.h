// FrameQueue holds the frames that wait to be sent, in order. Pure. It allocates only while it grows to its working
// size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/wire/frame.h"

namespace gleaner::transport::rdma {

class FrameQueue {
 public:
  struct Frame {
    wire::Header header;
    Buffer payload;
  };

  bool empty() const { return first_ == end_; }
  // Adds a frame at the end and returns it. The reference is valid until the next push() or pop().
  Frame& push(const wire::Header& header, Buffer payload) {
    if (end_ - first_ == ring_.size()) grow();
    Frame& frame = ring_[end_++ & (ring_.size() - 1)];
    frame.header = header;
    frame.payload = std::move(payload);
    return frame;
  }
  // front() and pop() need !empty(). pop() releases the payload of the first frame.
  Frame& front() { return ring_[first_ & (ring_.size() - 1)]; }
  const Frame& front() const { return ring_[first_ & (ring_.size() - 1)]; }
  void pop() {
    front().payload = {};
    ++first_;
  }

 private:
  static constexpr size_t kFirstFrames = 16;

  void grow() {
    std::vector<Frame> larger(std::max(kFirstFrames, ring_.size() * 2));
    for (uint64_t i = first_; i != end_; ++i)
      larger[i & (larger.size() - 1)] = std::move(ring_[i & (ring_.size() - 1)]);
    ring_ = std::move(larger);
  }

  std::vector<Frame> ring_;  // its size is a power of two
  uint64_t first_ = 0;
  uint64_t end_ = 0;
};

}  // namespace gleaner::transport::rdma
