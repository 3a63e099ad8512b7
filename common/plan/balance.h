// Balance chooses the owner of each next slice of the stream, so that after every slice each member owns its share of
// the bytes dealt so far, to within one slice of the largest size.
//
// A member's *deadline* is the position in the stream at which it would be a whole slice behind its share. Among the
// members that are not ahead of their share, the one with the earliest deadline gets the slice. Members that can't fall
// a whole slice behind before the end of the stream come after all others. Of these, the member that lacks most comes
// first, so that the totals come close to the shares. Example: with shares 1/2, 1/4, 1/4 and slices of one size, the
// owners are 0, 0, 1, 2, 0, 0, 1, 2 and so on.
// docs/model.md#the-stream proves the bound for slices of any sizes; for slices of one size this is the chairman
// assignment problem (R. Tijdeman, Discrete Mathematics 32, 1980). Cost: O(log members) amortized per slice; no
// allocation after construction.
#pragma once

#include <cstdint>
#include <vector>

namespace gleaner::plan {

class Balance {
 public:
  // `owned`: bytes that each member owns so far. `end`: bytes of the whole stream. `largest_slice`: the size of the
  // largest slice, past or future.
  Balance(const std::vector<double>& shares, const std::vector<uint64_t>& owned, uint64_t end, uint64_t largest_slice);

  // Returns the member that is to own the next slice, which has at most `bytes`.
  uint32_t next(uint64_t bytes);

  // Returns the bytes that `member` lacks of its share of the whole stream; negative if it owns more.
  double missing(uint32_t member) const { return due_at_end_[member] - static_cast<double>(owned_[member]); }

  // Deals the next `bytes` of the stream to the member that next() returned. `bytes` must not exceed the argument of
  // next().
  void give(uint64_t bytes);

 private:
  // A position in the stream at which a member stops being ahead of its share, or reaches its deadline.
  struct Event {
    double position;
    uint32_t member;
    bool operator>(const Event& other) const {
      return position != other.position ? position > other.position : member > other.member;
    }
  };

  // Returns the key of a member in `due_`: its deadline, or a position after the end if it has none.
  double urgency(uint32_t member) const;

  std::vector<double> bytes_per_share_;  // 1 / share
  std::vector<double> due_at_end_;       // each member's share of the whole stream, in bytes
  std::vector<uint64_t> owned_;
  double end_;
  double largest_slice_;
  uint64_t stream_ = 0;  // bytes dealt so far
  // Min-heap of the members ahead of their share, by the position at which they are no longer ahead.
  std::vector<Event> ahead_;
  // Min-heap of the other members, by urgency().
  std::vector<Event> due_;
};

}  // namespace gleaner::plan
