#include "coordinator/planning/push_pull_counts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gleaner::coordinator {

bool PushPullCounts::ask(uint32_t epoch, absl::Duration now) {
  if (epoch != epoch_ || (second_.has_value() && !is_fresh(now))) {
    reset();
    epoch_ = epoch;
  }
  if (second_.has_value() || (asked_.has_value() && now - *asked_ < times_.ask_again)) return false;
  if (first_.has_value() && now - first_->at < times_.apart) return false;
  asked_ = now;
  return true;
}

void PushPullCounts::on_counts(uint32_t epoch, std::vector<uint64_t> counts, absl::Duration now) {
  if (epoch != epoch_ || !asked_.has_value()) return;
  asked_.reset();
  auto& next = first_.has_value() ? second_ : first_;
  next = {std::move(counts), now};
  if (second_.has_value() && second_->by_tensor.size() != first_->by_tensor.size()) reset();
}

bool PushPullCounts::are_known(uint32_t epoch, size_t tensors, absl::Duration now) const {
  return epoch == epoch_ && is_fresh(now) && second_->by_tensor.size() == tensors;
}

uint64_t PushPullCounts::after_next_plan(uint32_t tensor, absl::Duration now) const {
  const uint64_t count = second_->by_tensor[tensor];
  const uint64_t more = count - std::min(count, first_->by_tensor[tensor]);
  const double per_second = static_cast<double>(more) / absl::ToDoubleSeconds(second_->at - first_->at);
  const double margin = std::ceil(per_second * absl::ToDoubleSeconds(now - second_->at + times_.change_lead));
  return count + 1 + static_cast<uint64_t>(std::max(margin, 1.0));
}

}  // namespace gleaner::coordinator
