// Keeps results that another worker may still lack: if their owner is lost, this worker hands them on.
//
// The last result of each partition is kept until its owner says that every worker has it, or the partition's next
// result takes its place. The kept result is the buffer in which it came, so nothing is copied. No allocation once
// warm.
//
// A worker must not leave a job while others rely on a result that it keeps. Others rely on it if its owner can be lost
// while the job goes on, as CPU summers can, or if the partition has moved to another owner. They don't rely on it if
// its owner is a worker's own summer, which delivers all its results before it leaves.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/buffer.h"

namespace gleaner::session {

class Retention {
 public:
  struct Kept {
    Buffer result;  // empty: nothing is kept
    ReduceOp op = ReduceOp::kSum;
  };

  void resize(size_t partitions, size_t owners, uint32_t workers) {
    kept_.resize(partitions);
    orders_.resize(owners);
    workers_ = workers;
  }

  // `number`: of the owner's results.
  void keep(uint32_t partition, uint32_t owner, uint32_t number, Buffer result, ReduceOp op) {
    drop(partition);
    bytes_ += result.size();
    kept_[partition] = {{std::move(result), op}, owner, number};
    relied_on_ += is_relied_on(partition) ? 1 : 0;
    orders_[owner].push({number, partition});
  }

  // Every worker has those of the owner's results that are before `number`.
  void release(uint32_t owner, uint32_t number) {
    Order& order = orders_[owner];
    while (!order.empty() && is_before(order.front().number, number)) {
      const Place place = order.pop();
      const Entry& entry = kept_[place.partition];
      if (entry.owner == owner && entry.number == place.number) drop(place.partition);
    }
  }

  // It has another owner from now on, who numbers results on its own: what is kept stays until its next one is here.
  void detach(uint32_t partition) {
    relied_on_ -= is_relied_on(partition) ? 1 : 0;
    kept_[partition].owner = kNobody;
    relied_on_ += is_relied_on(partition) ? 1 : 0;
  }
  // Its place is somebody else's now; all its partitions are detached.
  void forget(uint32_t owner) { orders_[owner].clear(); }

  const Kept& find(uint32_t partition) const { return kept_[partition].what; }
  bool is_detached(uint32_t partition) const { return kept_[partition].owner == kNobody; }
  bool is_relied_on(uint32_t partition) const {
    const Entry& entry = kept_[partition];
    return !entry.what.result.empty() && entry.owner >= workers_;
  }
  uint32_t relied_on() const { return relied_on_; }  // partitions
  void drop(uint32_t partition) {
    relied_on_ -= is_relied_on(partition) ? 1 : 0;
    bytes_ -= kept_[partition].what.result.size();
    kept_[partition] = {};
  }
  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;  // above every member
  struct Entry {
    Kept what;
    uint32_t owner = kNobody;
    uint32_t number = 0;
  };
  struct Place {
    uint32_t number = 0;
    uint32_t partition = 0;
  };
  // An owner's results in the order in which they came: a ring whose size is a power of two.
  class Order {
   public:
    bool empty() const { return first_ == end_; }
    const Place& front() const { return at(first_); }
    Place pop() { return places_[first_++ & (places_.size() - 1)]; }
    void clear() { first_ = end_; }
    void push(Place place) {
      if (end_ - first_ == places_.size()) {
        std::vector<Place> larger(places_.empty() ? 16 : 2 * places_.size());
        for (uint32_t i = first_; i != end_; ++i) larger[i & (larger.size() - 1)] = at(i);
        places_.swap(larger);
      }
      places_[end_++ & (places_.size() - 1)] = place;
    }

   private:
    const Place& at(uint32_t index) const { return places_[index & (places_.size() - 1)]; }
    std::vector<Place> places_;
    uint32_t first_ = 0;
    uint32_t end_ = 0;
  };

  // Numbers wrap around.
  static bool is_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

  std::vector<Entry> kept_;    // by partition
  std::vector<Order> orders_;  // by owner
  uint32_t workers_ = 0;
  uint32_t relied_on_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace gleaner::session
