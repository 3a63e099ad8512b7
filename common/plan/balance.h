// Balance chooses the owner of each next slice of the stream, so that after every slice each member owns its share of
// the bytes dealt so far, to within one slice of the largest size.
//
// Example: with shares 1/2, 1/4, 1/4 and slices of one size, the owners are 0, 0, 1, 2, 0, 0, 1, 2 and so on.
//
// Rule. W bytes are dealt so far, o_m of them to member m of share s_m; P is the largest slice. For a slice of up to w
// bytes, a member is *due* if it is not ahead of its share: o_m <= s_m (W + w). Some member always is, as the o_m add
// up to W and the s_m to 1. A member's *deadline* is the position in the stream at which it would be a whole slice
// behind its share: (o_m + P) / s_m. Of the due members, the one with the earliest deadline gets the slice. Members
// without a deadline before the end of the stream come after all others. Of these, the member that lacks most comes
// first, so that the totals come close to the shares.
//
// No member is more than P ahead: one that gets a slice owned at most s_m (W + w) before it, so afterwards at most
// w <= P more than that.
//
// No member is more than P behind. Suppose that one is, at position V, so that its deadline was before V:
// 1. Take the last slice that went to a member with a deadline after V. It ends at U; U = 0 if there is no such slice.
//    E is the set of the members that got later slices, and of the one that is behind.
// 2. At U all members of E had deadlines by V, since deadlines only grow, and yet were passed over. So none was due:
//    o_m > s_m U.
// 3. At V no member of E owns more than s_m V: before its last slice it owned at most s_m V - P.
// 4. So from U to V each member of E got at most s_m (V - U) bytes, and the one behind got over P less. All of E
//    together got less than V - U. But every byte between U and V went to E, a contradiction.
//
// For slices of one size this is the chairman assignment problem (R. Tijdeman, Discrete Mathematics 32, 1980). The
// proof does not depend on the order of members without a deadline. docs/model.md#the-stream says why prefixes count.
// Cost: O(log members) amortized per slice; no allocation after construction.
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
