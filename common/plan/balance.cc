#include "common/plan/balance.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace gleaner::plan {

Balance::Balance(const std::vector<double>& shares, const std::vector<uint64_t>& owned, uint64_t end,
                 uint64_t largest_slice)
    : bytes_per_share_(shares.size()),
      due_at_end_(shares.size()),
      owned_(owned),
      end_(static_cast<double>(end)),
      largest_slice_(static_cast<double>(largest_slice)),
      stream_(std::accumulate(owned.begin(), owned.end(), uint64_t{0})) {
  ahead_.reserve(shares.size());
  due_.reserve(shares.size());
  for (uint32_t member = 0; member < shares.size(); ++member) {
    if (shares[member] <= 0) continue;
    bytes_per_share_[member] = 1 / shares[member];
    due_at_end_[member] = shares[member] * end_;
    ahead_.push_back({static_cast<double>(owned_[member]) * bytes_per_share_[member], member});
  }
  std::ranges::make_heap(ahead_, std::greater{});
}

double Balance::urgency(uint32_t member) const {
  // The member lacks less than a slice, so it has no deadline before the end.
  if (missing(member) < largest_slice_) return end_ + (largest_slice_ - missing(member));
  return (static_cast<double>(owned_[member]) + largest_slice_) * bytes_per_share_[member];
}

uint32_t Balance::next(uint64_t bytes) {
  const auto position = static_cast<double>(stream_ + bytes);
  // Some member is always due, since `position` includes the slice, which no member owns yet. Only rounding could leave
  // `due_` empty; the first member that is ahead then becomes due.
  while (!ahead_.empty() && (due_.empty() || ahead_.front().position <= position)) {
    const uint32_t member = ahead_.front().member;
    std::ranges::pop_heap(ahead_, std::greater{});
    ahead_.pop_back();
    due_.push_back({urgency(member), member});
    std::ranges::push_heap(due_, std::greater{});
  }
  return due_.front().member;
}

void Balance::give(uint64_t bytes) {
  const uint32_t owner = due_.front().member;
  std::ranges::pop_heap(due_, std::greater{});
  due_.pop_back();
  stream_ += bytes;
  owned_[owner] += bytes;
  ahead_.push_back({static_cast<double>(owned_[owner]) * bytes_per_share_[owner], owner});
  std::ranges::push_heap(ahead_, std::greater{});
}

}  // namespace gleaner::plan
