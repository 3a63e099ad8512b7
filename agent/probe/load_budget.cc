#include "agent/probe/load_budget.h"

#include <algorithm>

namespace gleaner::probe {

LoadBudget::Load::Load(LoadBudget* budget, const Clock& clock)
    : budget_(budget), clock_(clock), begin_(clock.since_start()) {
  if (budget_ != nullptr) budget_->begin();
}

LoadBudget::Load::~Load() {
  if (budget_ != nullptr) budget_->end(begin_, clock_.since_start());
}

void LoadBudget::set_nic(double speed, double used) {
  absl::MutexLock lock(&mutex_);
  nic_is_free_ = speed > 0 && used <= kMostUse * speed;
}

bool LoadBudget::allows(absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  return nic_is_free_ && loads_ == 0 && now >= paid_off_at_;
}

void LoadBudget::begin() {
  absl::MutexLock lock(&mutex_);
  ++loads_;
}

void LoadBudget::end(absl::Duration begin, absl::Duration end) {
  absl::MutexLock lock(&mutex_);
  --loads_;
  paid_off_at_ = std::max(paid_off_at_, begin) + kPayOff * (end - begin);
}

}  // namespace gleaner::probe
