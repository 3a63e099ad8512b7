// One sum of a partition at a step, from its first contribution until every worker has acknowledged the result.
//
// A Sum has room for one contribution per worker, so it is large when there are many workers; but few sums are alive
// at a time, and SumPool hands the same ones out again and again: once warm, nothing is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/buffer.h"

namespace gleaner::engine {

struct Sum {
  ReduceOp op = ReduceOp::kSum;
  uint32_t pending = 0;                // workers whose contribution, and once it is made whose ack, is missing
  std::vector<Buffer> contributions;   // by worker; empty: not here. All empty once the sum is made
  std::vector<uint64_t> acknowledged;  // one bit per worker
  Buffer result;                       // empty until made, or handed on
  uint32_t number = 0;                 // of the result (releases.h)
  bool handed = false;                 // it was not made here

  bool has_contribution(uint32_t worker) const { return !contributions[worker].empty(); }
  bool has_acknowledged(uint32_t worker) const { return (acknowledged[worker / 64] >> (worker % 64) & 1) != 0; }
  void acknowledge(uint32_t worker) {
    acknowledged[worker / 64] |= uint64_t{1} << (worker % 64);
    --pending;
  }
};

class SumPool {
 public:
  // For sums of `workers` contributions. Nothing may be alive.
  void reset(uint32_t workers) {
    workers_ = workers;
    all_.clear();
    free_.clear();
  }

  // A sum that waits for all its contributions.
  Sum* take() {
    if (free_.empty()) {
      auto sum = std::make_unique<Sum>();
      sum->contributions.resize(workers_);
      sum->acknowledged.resize((workers_ + 63) / 64);
      all_.push_back(std::move(sum));
      free_.reserve(all_.size());
      free_.push_back(all_.back().get());
    }
    Sum* sum = free_.back();
    free_.pop_back();
    sum->pending = workers_;
    return sum;
  }

  void give_back(Sum* sum) {
    sum->result = {};
    sum->handed = false;
    free_.push_back(sum);
  }

 private:
  uint32_t workers_ = 0;
  std::vector<std::unique_ptr<Sum>> all_;
  std::vector<Sum*> free_;
};

}  // namespace gleaner::engine
