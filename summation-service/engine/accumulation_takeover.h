// AccumulationTakeover is the takeover of a running sum from an earlier owner. Every worker reports the version of the
// sum that it has. The new owner fetches the highest version from a worker that has it (kFetch, kHand), and adds
// further contributions to that sum. Contributions that arrive meanwhile wait.
//
// The versions of a partition form one sequence, so the highest version that a worker has contains every contribution
// that was ever answered. Its counts say which other contributions it contains.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/buffer.h"

namespace gleaner::engine {

class AccumulationTakeover {
 public:
  struct Contribution {
    Buffer values;  // empty: none
    uint64_t step = 0;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit AccumulationTakeover(uint32_t workers) : missing_(workers), heard_(workers), waiting_(workers) {}

  bool has_heard(uint32_t worker) const { return heard_[worker] != 0; }
  // Records that `worker` has this version. Called once for each worker. Returns whether all workers have reported.
  bool hear(uint32_t worker, uint64_t version);
  uint64_t version() const { return version_; }  // the highest version reported so far
  uint32_t source() const { return source_; }    // a worker that has that version; kNone: no worker has reported

  // Records that source() was asked for the sum.
  void set_fetching() { fetching_ = true; }
  bool is_fetching() const { return fetching_; }

  // Keeps a contribution until the takeover ends. A worker has at most one.
  void keep(uint32_t worker, Buffer values, uint64_t step);
  const Contribution& waiting(uint32_t worker) const { return waiting_[worker]; }

 private:
  uint32_t missing_;            // number of workers that have not reported their version
  std::vector<uint8_t> heard_;  // by worker: 1 if it has reported its version
  uint64_t version_ = 0;
  uint32_t source_ = kNone;
  bool fetching_ = false;
  std::vector<Contribution> waiting_;  // by worker
};

}  // namespace gleaner::engine
