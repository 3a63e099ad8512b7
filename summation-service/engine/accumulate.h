// A partition of a tensor that accumulates: the running sum of all contributions to it, from zero, in the order in
// which they came.
//
// Exactly once: a worker's contributions come one by one, each when the last was answered, so the number of those that
// are in tells which is the next, and that any other is a repeat. A push is answered with the sum as it is then, its
// own contribution included, and with these numbers, the counts. Their total is the version of the sum. A sum is never
// written over: the next one is another buffer, as the last may be on its way to somebody.
// Staleness: an answer to step t waits until every worker's steps before t - staleness are in; the contribution is.
// Inheritance: a later owner hears from every worker which version it has, asks one that has the highest for it
// (kFetch, kHand), and goes on from there. Versions follow one another, so the highest that a worker has contains all
// that was ever answered; what it contains and was not answered, the counts tell. What is pushed meanwhile waits.
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
