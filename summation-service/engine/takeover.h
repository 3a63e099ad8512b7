// Takeover is the takeover of a partition from an earlier owner. Every contributor reports its next step of the
// partition. (The partition's first owner needs no takeover: all workers are at their first step.)
//
// A worker's next step is the number of results that it has. Workers are never more than one step apart: no worker
// begins a step before it has the previous result, which needs a contribution of every worker. So there are two cases:
// - All workers are at the same step. The new owner continues with that step.
// - Some workers are one step ahead. The earlier owner made a result that only these workers have; one of them hands it
//   on.
//
// Example with three workers: worker 0 reports that it has all results before step 5, workers 1 and 2 report 6. Then
// worker 0 is behind, and the new owner fetches the result of step 5 from worker 1.
#pragma once

#include <cstdint>

#include "summation-service/engine/worker_set.h"

namespace gleaner::engine {

class Takeover {
 public:
  // `contributors`: how many of the job's `workers` contribute to the partition.
  Takeover(uint32_t workers, uint32_t contributors) : missing_(contributors), heard_(workers), ahead_(workers) {}

  static constexpr uint32_t kNone = UINT32_MAX;

  // Returns whether a worker that has not reported yet can have all results before `next`, if the furthest worker that
  // has reported has all results before `furthest`.
  bool fits(uint64_t next, uint64_t furthest) const {
    if (counted_ == 0) return true;
    return next == furthest || next + 1 == furthest || (next == furthest + 1 && behind_ == 0);
  }

  // Records that `worker` has all results before `next`. Called once for each worker, and only if fits(). Returns true
  // if this makes `next` the furthest step.
  bool hear(uint32_t worker, uint64_t next, uint64_t furthest) {
    const bool leads = counted_ == 0 || next > furthest;
    if (leads) {
      behind_ = counted_;
      ahead_.clear();
    }
    if (next < furthest) {
      ++behind_;
    } else {
      ahead_.add(worker);
    }
    heard_.add(worker);
    ++counted_;
    --missing_;
    return leads;
  }

  bool has_heard(uint32_t worker) const { return heard_.contains(worker); }
  bool complete() const { return missing_ == 0; }
  uint32_t behind() const { return behind_; }        // number of workers that have reported and lack the last result
  const WorkerSet& ahead() const { return ahead_; }  // workers that have reported and are at the furthest step

  // Returns the worker from which to fetch the last result: the first one that has it. Needs complete().
  uint32_t source() const { return ahead_.first(); }
  // Records that `worker` was asked for the last result.
  void ask(uint32_t worker) { asked_ = worker; }
  uint32_t asked() const { return asked_; }  // kNone: no worker was asked

 private:
  uint32_t missing_;      // number of workers that have not reported
  uint32_t counted_ = 0;  // number of workers that have reported
  uint32_t behind_ = 0;   // number of those that lack the last result
  uint32_t asked_ = kNone;
  WorkerSet heard_;
  WorkerSet ahead_;
};

}  // namespace gleaner::engine
