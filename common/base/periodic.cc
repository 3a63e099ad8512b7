#include "common/base/periodic.h"

#include <utility>

#include "common/base/thread.h"

namespace gleaner {

Periodic::Periodic(const char* thread_name, absl::Duration interval, First first, std::function<void()> call)
    : thread_([this, thread_name, interval, first, call = std::move(call)] {
        name_this_thread(thread_name);
        if (first == First::kNow) call();
        while (!stopping_.WaitForNotificationWithTimeout(interval)) call();
      }) {}

Periodic::~Periodic() {
  stopping_.Notify();
  thread_.join();
}

}  // namespace gleaner
