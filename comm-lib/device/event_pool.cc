#include "comm-lib/device/event_pool.h"

namespace gleaner::device {

absl::StatusOr<EventPool::Loan> EventPool::take() {
  absl::MutexLock lock(&mutex_);
  const uint32_t slot = events_.take();
  std::unique_ptr<Event>& event = events_[slot];
  if (event == nullptr) {
    auto made = device_->create_event();
    if (!made.ok()) {
      events_.give_back(slot);
      return std::move(made).status();
    }
    event = *std::move(made);
  }
  return Loan(this, slot, event.get());
}

void EventPool::give_back(uint32_t slot) {
  absl::MutexLock lock(&mutex_);
  events_[slot]->forget();
  events_.give_back(slot);
}

size_t EventPool::size() const {
  absl::MutexLock lock(&mutex_);
  return events_.size();
}

}  // namespace gleaner::device
