// Chooses the owner of each next slice of the stream, so that after every slice each member owns its share of what has
// passed, give or take one slice of the largest size.
//
// Earliest deadline first, among the members that are not ahead of their share: a member's deadline is the position in
// the stream at which it would be a whole slice behind. docs/model.md proves the bound, for slices of any sizes; for
// slices of one size this is the chairman assignment problem (R. Tijdeman, Discrete Mathematics 32, 1980).
// Cost: O(log members) per slice; no allocation after construction.
#pragma once

#include <cstdint>
#include <vector>

namespace gleaner::plan {

class Balance {
 public:
  // `owned`: what each member owns of the stream so far. `largest_slice`: no slice, past or future, is larger.
  Balance(const std::vector<double>& shares, const std::vector<uint64_t>& owned, uint64_t largest_slice);

  // The owner of the next `bytes` of the stream.
  uint32_t assign(uint64_t bytes);

 private:
  // A position in the stream that concerns a member.
  struct Event {
    double position;
    uint32_t member;
    bool operator>(const Event& other) const {
      return position != other.position ? position > other.position : member > other.member;
    }
  };

  std::vector<double> bytes_per_share_;  // 1 / share
  std::vector<uint64_t> owned_;
  double largest_slice_;
  uint64_t stream_ = 0;
  std::vector<Event> ahead_;  // min-heap: where the stream catches up with the member
  std::vector<Event> due_;    // min-heap: deadlines of those that are not ahead
};

}  // namespace gleaner::plan
