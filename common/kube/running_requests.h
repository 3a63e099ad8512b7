// RunningRequests counts the requests that cpprestsdk still processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace gleaner::kube {

// Counts the requests that cpprestsdk still processes, including those that their callers have abandoned. The process
// must not end before they do.
class RunningRequests {
 public:
  // Counts a request as running until the last copy of the result is destroyed.
  std::shared_ptr<void> begin() {
    const auto end = [state = state_](std::nullptr_t) {
      absl::MutexLock lock(&state->mutex);
      --state->requests;
    };
    absl::MutexLock lock(&state_->mutex);
    ++state_->requests;
    return {nullptr, end};
  }
  // Waits until no request runs, for at most `timeout`.
  void wait(absl::Duration timeout) {
    const auto none = [this] { return state_->requests == 0; };
    absl::MutexLock lock(&state_->mutex);
    state_->mutex.AwaitWithTimeout(absl::Condition(&none), timeout);
  }

 private:
  struct State {
    absl::Mutex mutex;
    uint32_t requests = 0;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace gleaner::kube
