// Chooses the owner of each next slice of the stream, so that after every slice each member owns its share of what has
// passed, give or take one slice of the largest size.
//
// Among the members that are not ahead of their share, earliest deadline first: a member's deadline is the position in
// the stream at which it would be a whole slice behind. Who can't fall that far behind before the end comes after
// those, the most missing first, so that the end is dealt closest. docs/model.md proves the bound, for slices of any
// sizes; for slices of one size this is the chairman assignment problem (R. Tijdeman, Discrete Mathematics 32, 1980).
// Cost: O(log members) amortized per slice; no allocation after construction.
#pragma once

#include <cstdint>
#include <vector>

namespace gleaner::plan {

class Balance {
 public:
  // `owned`: what each member owns of the stream so far. `end`: bytes of the stream when all is dealt. `largest_slice`:
  // no slice, past or future, is larger.
  Balance(const std::vector<double>& shares, const std::vector<uint64_t>& owned, uint64_t end, uint64_t largest_slice);

  // Who is to own the slice of up to `bytes` that comes next.
  uint32_t next(uint64_t bytes);

  // What `member` lacks of its share of the whole stream; may be negative.
  double missing(uint32_t member) const { return due_at_end_[member] - static_cast<double>(owned_[member]); }

  // Gives `bytes` to the member that next() named: no more than next() was asked for.
  void give(uint64_t bytes);

 private:
  // A position in the stream that concerns a member.
  struct Event {
    double position;
    uint32_t member;
    bool operator>(const Event& other) const {
      return position != other.position ? position > other.position : member > other.member;
    }
  };

  // Where a member stands in the queue of those that are due.
  double urgency(uint32_t member) const;

  std::vector<double> bytes_per_share_;  // 1 / share
  std::vector<double> due_at_end_;       // share of the whole stream, in bytes
  std::vector<uint64_t> owned_;
  double end_;
  double largest_slice_;
  uint64_t stream_ = 0;
  std::vector<Event> ahead_;  // min-heap: where the stream catches up with the member
  std::vector<Event> due_;    // min-heap: urgencies of those that are not ahead
};

}  // namespace gleaner::plan
