#include "common/kube/cancellation.h"

#include <utility>

namespace gleaner::kube {

void Cancellation::cancel() {
  std::map<uint64_t, std::function<void()>> actions;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    actions.swap(actions_);
  }
  for (const auto& [id, action] : actions) action();
}

bool Cancellation::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

Cancellation::Registration::Registration(Cancellation* cancellation, std::function<void()> action)
    : cancellation_(cancellation) {
  if (cancellation_ == nullptr) return;
  {
    absl::MutexLock lock(&cancellation_->mutex_);
    if (!cancellation_->cancelled_) {
      id_ = cancellation_->next_id_++;
      cancellation_->actions_.emplace(id_, std::move(action));
      return;
    }
  }
  action();
}

Cancellation::Registration::~Registration() {
  if (cancellation_ == nullptr) return;
  absl::MutexLock lock(&cancellation_->mutex_);
  cancellation_->actions_.erase(id_);
}

}  // namespace gleaner::kube
