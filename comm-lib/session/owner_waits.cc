#include "comm-lib/session/owner_waits.h"

namespace gleaner::session {

void OwnerWaits::on_plan(uint32_t workers, const std::vector<bool>& owns, absl::Duration now) {
  advance(now);
  workers_ = workers;
  owners_with_share_ = owing_workers_ = owing_summers_ = 0;
  do_workers_own_ = false;
  workers_late_ = absl::ZeroDuration();
  for (uint32_t i = 0; i < owners_.size(); ++i) {
    Owner& owner = owners_[i];
    owner.owns = i < owns.size() && owns[i];
    owner.late = absl::ZeroDuration();
    owner.late_from = late_time_;
    owners_with_share_ += owner.owns ? 1 : 0;
    do_workers_own_ |= owner.owns && i < workers;
    if (owner.missing > 0) ++(i < workers ? owing_workers_ : owing_summers_);
  }
}

void OwnerWaits::clear() {
  owing_workers_ = owing_summers_ = 0;
  for (Owner& owner : owners_) {
    const bool owns = owner.owns;
    owner = Owner{};
    owner.owns = owns;
  }
}

std::vector<OwnerWaits::Late> OwnerWaits::late(absl::Duration now) {
  advance(now);
  std::vector<Late> late;
  for (uint32_t i = workers_; i < owners_.size(); ++i) {
    const Owner& owner = owners_[i];
    if (!owner.owns) continue;
    late.push_back({i, owner.late + (owner.pushed > 0 ? late_time_ - owner.late_from : absl::ZeroDuration())});
  }
  return late;
}

absl::Duration OwnerWaits::workers_late(absl::Duration now) {
  advance(now);
  return workers_late_;
}

}  // namespace gleaner::session
