// Periodic is a thread that calls a function at intervals, from its construction to its destruction.
//
// An interval counts from the end of a call, so a slow call delays the next one and calls never overlap.
#pragma once

#include <functional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace gleaner {

class Periodic {
 public:
  enum class First { kNow, kAfterInterval };
  // `thread_name` has at most 15 characters. `call` must not throw, nor destroy this object.
  Periodic(const char* thread_name, absl::Duration interval, First first, std::function<void()> call);
  ~Periodic();  // waits for a call in progress
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

 private:
  absl::Notification stopping_;
  std::thread thread_;  // declared last, since it uses all members above
};

}  // namespace gleaner
