// Watches what others do with this machine's processors, and says when this process has to leave it.
//
// A thread of its own ("gln-guard") does, for as long as the process lives: it watches while the summer waits to join
// as well. Made before the process goes to the background, it goes first among this process's threads. It asks to leave
// at first. Who leaves needs processors too, and may get none where all are needed: what is left of the process after
// kPatience is cut off, and at once where even this thread had to wait for its turn.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "common/base/env.h"
#include "summation-service/service/guard.h"

namespace gleaner::service {

class Watch {
 public:
  struct Actions {
    std::function<std::optional<Usage>()> read;  // of now; none: it can't be told
    std::function<void()> leave;                 // once, unless it is cut off at once
    std::function<void()> cut;                   // once
  };
  static constexpr absl::Duration kEvery = absl::Milliseconds(100);
  static constexpr absl::Duration kPatience = absl::Milliseconds(600);
  static constexpr absl::Duration kLate = absl::Milliseconds(250);  // from one look to the next

  // `actions` are called by the watching thread.
  Watch(const Env& env, double yield_above, Actions actions);
  ~Watch();  // nothing is called any more

  // Of the processors' time, of late. From any thread.
  double others_share() const { return others_share_.load(std::memory_order_relaxed); }

 private:
  void run();
  bool needed();
  bool stopped_within(absl::Duration time);

  const Env env_;
  const double yield_above_;
  const Actions actions_;
  Guard guard_;  // this and the next: the thread's
  absl::Duration looked_;
  bool late_ = false;  // the last look
  std::atomic<double> others_share_ = 0;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace gleaner::service
