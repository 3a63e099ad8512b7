// A partition of a tensor that accumulates: the running sum of all contributions to it, from zero, in the order in
// which they came.
//
// Exactly once: a worker sends a contribution when its last one was answered. So the number of its contributions that
// are in tells which is the next, and that any other is a repeat. A push is answered with the sum as it is then, its
// own contribution included, and with these numbers, the counts. Their total is the version of the sum. A sum is never
// overwritten: the next one is another buffer, since the last one may be on its way to a worker.
// Staleness: the answer to step t waits until every worker's steps before t - staleness are in; the contribution itself
// is in at once.
// Inheritance: a later owner hears from every worker which version it has, asks one that has the highest for it
// (kFetch, kHand), and goes on from there. Versions follow one another, so the highest version that a worker has
// contains every contribution that was ever answered. The counts tell which contributions it contains that were not
// answered. Pushes that come meanwhile wait.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/buffer.h"

namespace gleaner::engine {

struct Inheritance {
  explicit Inheritance(uint32_t workers) : missing(workers), heard(workers), pushed(workers) {}

  static constexpr uint32_t kNobody = UINT32_MAX;
  struct Pushed {
    Buffer contribution;  // empty: none
    uint64_t step = 0;
  };

  uint32_t missing;            // workers that were not heard
  std::vector<uint8_t> heard;  // by worker
  uint64_t version = 0;        // the highest of those heard
  uint32_t giver = kNobody;    // who has it
  bool asked = false;
  std::vector<Pushed> pushed;  // by worker
};

struct Accumulation {
  explicit Accumulation(uint32_t workers) : counts(workers), due(workers) {}

  Buffer answer;                             // the sum and, behind it, the counts: as it is sent. Empty: nothing is in
  std::vector<uint64_t> counts;              // by worker: contributions that are in
  uint64_t version = 0;                      // all of them
  std::vector<uint8_t> due;                  // by worker: its last contribution is in and not answered
  std::unique_ptr<Inheritance> inheritance;  // until it is over
};

}  // namespace gleaner::engine
