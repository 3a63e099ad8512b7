// How an owner begins with a partition, as its first owner or a later one: every worker says how far it is.
//
// A worker's next step is the number of results it has. Either all workers are at the same step, or some are one ahead:
// a result was made, and only these have it. Then one of them hands it on. Workers are never more than one step apart:
// none begins a step before the last one is done, which needs a contribution of every worker.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace gleaner::engine {

class Takeover {
 public:
  explicit Takeover(uint32_t workers) : missing_(workers), heard_((workers + 63) / 64), ahead_(heard_.size()) {}

  static constexpr uint32_t kNobody = UINT32_MAX;

  // Whether a worker that was not heard yet can have all results before `next`, while the furthest so far has those
  // before `furthest`.
  bool fits(uint64_t next, uint64_t furthest) const {
    if (counted_ == 0) return true;
    return next == furthest || next + 1 == furthest || (next == furthest + 1 && behind_ == 0);
  }

  // Once for each worker, if it fits. True: nobody was as far before, `next` is the furthest now.
  bool hear(uint32_t worker, uint64_t next, uint64_t furthest) {
    const bool leads = counted_ == 0 || next > furthest;
    if (leads) {
      behind_ = counted_;
      ahead_.assign(ahead_.size(), 0);
    }
    if (next < furthest) {
      ++behind_;
    } else {
      set(ahead_, worker);
    }
    set(heard_, worker);
    ++counted_;
    --missing_;
    return leads;
  }

  bool has_heard(uint32_t worker) const { return is_set(heard_, worker); }
  bool complete() const { return missing_ == 0; }
  uint32_t behind() const { return behind_; }                    // workers, of those heard
  const std::vector<uint64_t>& ahead() const { return ahead_; }  // one bit per worker

  // Who is to hand on the last result; once complete.
  uint32_t giver() const {
    uint32_t word = 0;
    while (ahead_[word] == 0) ++word;
    return word * 64 + static_cast<uint32_t>(std::countr_zero(ahead_[word]));
  }
  void ask(uint32_t worker) { asked_ = worker; }
  uint32_t asked() const { return asked_; }

 private:
  static void set(std::vector<uint64_t>& bits, uint32_t worker) { bits[worker / 64] |= uint64_t{1} << (worker % 64); }
  static bool is_set(const std::vector<uint64_t>& bits, uint32_t worker) {
    return (bits[worker / 64] >> (worker % 64) & 1) != 0;
  }

  uint32_t missing_;
  uint32_t counted_ = 0;  // workers heard
  uint32_t behind_ = 0;   // of those, without the result that others have
  uint32_t asked_ = kNobody;
  std::vector<uint64_t> heard_;  // a bit per worker
  std::vector<uint64_t> ahead_;
};

}  // namespace gleaner::engine
