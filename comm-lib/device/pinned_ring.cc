#include "comm-lib/device/pinned_ring.h"

#include "absl/strings/str_cat.h"

namespace gleaner::device {

PinnedRing::PinnedRing(MutableBytes area, size_t granule_bytes)
    : area_(area), granule_bytes_(granule_bytes), slots_(area.size() / granule_bytes) {}

std::optional<MutableBytes> PinnedRing::take(size_t bytes) {
  const size_t length = (bytes + granule_bytes_ - 1) / granule_bytes_;
  if (length == 0 || length > granules() - used_) return std::nullopt;
  if (used_ == 0) next_ = oldest_ = 0;
  const size_t before_end = granules() - next_;
  if (next_ >= oldest_ && length > before_end) {
    if (length > oldest_) return std::nullopt;
    // Skips the granules before the end, as if they were a slot that is back.
    begin_slot(before_end, State::kGivenBack);
  }
  const MutableBytes slot = area_.subspan(next_ * granule_bytes_, bytes);
  begin_slot(length, State::kInUse);
  return slot;
}

absl::Status PinnedRing::give_back(MutableBytes slot) {
  const auto offset = static_cast<size_t>(slot.data() - area_.data());
  const size_t first = offset / granule_bytes_;
  if (offset % granule_bytes_ != 0 || first >= granules() || slots_[first].state != State::kInUse) {
    return absl::FailedPreconditionError(
        absl::StrCat("the slot at byte ", offset, " of the pinned ring is not in use; give each slot back once"));
  }
  slots_[first].state = State::kGivenBack;
  release_oldest();
  return absl::OkStatus();
}

void PinnedRing::begin_slot(size_t length, State state) {
  slots_[next_] = {static_cast<uint32_t>(length), state};
  next_ = (next_ + length) % granules();
  used_ += length;
}

void PinnedRing::release_oldest() {
  while (used_ > 0 && slots_[oldest_].state == State::kGivenBack) {
    const size_t length = slots_[oldest_].length;
    slots_[oldest_] = {};
    oldest_ = (oldest_ + length) % granules();
    used_ -= length;
  }
}

}  // namespace gleaner::device
