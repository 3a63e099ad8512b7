// ArrivedSlices holds payloads that have arrived and wait for their receive operations, as queues in one pool of nodes.
// Once warm it allocates no memory. Belongs to one thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/buffer.h"

namespace gleaner::executor {

class ArrivedSlices {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  // The ends of one queue. Only the ArrivedSlices changes them.
  struct Queue {
    uint32_t first = kNone;
    uint32_t last = kNone;
    bool empty() const { return first == kNone; }
  };

  void push(Queue& queue, Buffer payload) {
    uint32_t node = free_;
    if (node == kNone) {
      node = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
    } else {
      free_ = nodes_[node].next;
    }
    nodes_[node] = {std::move(payload), kNone};
    (queue.empty() ? queue.first : nodes_[queue.last].next) = node;
    queue.last = node;
  }

  // Needs a queue that is not empty.
  Buffer pop(Queue& queue) {
    const uint32_t node = queue.first;
    queue.first = std::exchange(nodes_[node].next, std::exchange(free_, node));
    if (queue.empty()) queue.last = kNone;
    return std::move(nodes_[node].payload);
  }

 private:
  struct Node {
    Buffer payload;
    uint32_t next = kNone;  // in its queue, or among the free nodes
  };
  std::vector<Node> nodes_;
  uint32_t free_ = kNone;  // the first free node
};

}  // namespace gleaner::executor
