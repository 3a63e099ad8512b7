// Retention keeps results that another worker may still lack. If their owner is lost, this worker sends them to the new
// owner.
//
// Retention keeps the last result of each partition until its owner says that every worker has it, or until the
// partition's next result replaces it. It keeps the buffer in which the result arrived, so it copies nothing. Once warm
// it allocates no memory.
//
// A kept result is *detached* when its partition has moved: the new owner's numbers do not refer to it.
//
// A worker must not leave a job while others may need a result that it keeps. Others may need the result if its owner
// can be lost while the job goes on, as CPU summers can, or if the result is detached. They do not need it if its owner
// is a worker's colocated summer, which delivers all its results before that worker leaves.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/buffer.h"

namespace gleaner::session {

class Retention {
 public:
  struct Result {
    Buffer buffer;  // empty: nothing is kept
    ReduceOp op = ReduceOp::kSum;
  };

  void resize(size_t partitions, size_t owners, uint32_t workers) {
    kept_.resize(partitions);
    orders_.resize(owners);
    workers_ = workers;
  }

  // Keeps `result` in place of the partition's earlier one. `number` is the owner's number of this result.
  void keep(uint32_t partition, uint32_t owner, uint32_t number, Buffer result, ReduceOp op) {
    drop(partition);
    bytes_ += result.size();
    kept_[partition] = {{std::move(result), op}, owner, number};
    needed_by_others_ += is_needed_by_others(partition) ? 1 : 0;
    orders_[owner].push({number, partition});
  }

  // Drops the owner's results with numbers before `number`, which every worker has.
  void release(uint32_t owner, uint32_t number) {
    Order& order = orders_[owner];
    while (!order.empty() && is_before(order.front().number, number)) {
      const QueueEntry oldest = order.pop();
      const Entry& entry = kept_[oldest.partition];
      if (entry.owner == owner && entry.number == oldest.number) drop(oldest.partition);
    }
  }

  // Detaches the kept result of a partition that moves to another owner, which numbers its results independently. The
  // result stays until the new owner says that every worker has it (kRelease), or until the partition's next result
  // arrives.
  void detach(uint32_t partition) {
    needed_by_others_ -= is_needed_by_others(partition) ? 1 : 0;
    kept_[partition].owner = kNoOwner;
    needed_by_others_ += is_needed_by_others(partition) ? 1 : 0;
  }
  // Forgets the order of an owner's results when another member takes its place. All its partitions must be detached.
  void forget(uint32_t owner) { orders_[owner].clear(); }

  const Result& find(uint32_t partition) const { return kept_[partition].result; }
  bool is_detached(uint32_t partition) const { return kept_[partition].owner == kNoOwner; }
  bool is_needed_by_others(uint32_t partition) const {
    const Entry& entry = kept_[partition];
    return !entry.result.buffer.empty() && entry.owner >= workers_;
  }
  uint32_t needed_by_others() const { return needed_by_others_; }  // number of kept results that others may need
  void drop(uint32_t partition) {
    needed_by_others_ -= is_needed_by_others(partition) ? 1 : 0;
    bytes_ -= kept_[partition].result.buffer.size();
    kept_[partition] = {};
  }
  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr uint32_t kNoOwner = UINT32_MAX;  // above every member
  struct Entry {
    Result result;
    uint32_t owner = kNoOwner;
    uint32_t number = 0;
  };
  struct QueueEntry {
    uint32_t number = 0;
    uint32_t partition = 0;
  };
  // An owner's results in the order in which they arrived, as a ring whose size is a power of two.
  class Order {
   public:
    bool empty() const { return first_ == end_; }
    const QueueEntry& front() const { return at(first_); }
    QueueEntry pop() { return entries_[first_++ & (entries_.size() - 1)]; }
    void clear() { first_ = end_; }
    void push(QueueEntry entry) {
      if (end_ - first_ == entries_.size()) {
        std::vector<QueueEntry> larger(entries_.empty() ? 16 : 2 * entries_.size());
        for (uint32_t i = first_; i != end_; ++i) larger[i & (larger.size() - 1)] = at(i);
        entries_.swap(larger);
      }
      entries_[end_++ & (entries_.size() - 1)] = entry;
    }

   private:
    const QueueEntry& at(uint32_t index) const { return entries_[index & (entries_.size() - 1)]; }
    std::vector<QueueEntry> entries_;
    uint32_t first_ = 0;
    uint32_t end_ = 0;
  };

  // Returns whether number `a` of a result is before number `b`. Numbers wrap around.
  static bool is_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

  std::vector<Entry> kept_;    // by partition
  std::vector<Order> orders_;  // by owner
  uint32_t workers_ = 0;
  uint32_t needed_by_others_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace gleaner::session
