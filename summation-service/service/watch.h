// Watch measures how much processor time other processes use, and makes this process leave the machine when they need
// all of it (guard.h).
//
// A thread of the watch, "gln-guard", runs as long as the process lives, also while the summer waits to join. Construct
// the watch before run_in_background(): then the scheduler prefers its thread to the process's other threads. The watch
// first asks the process to leave. Leaving takes processor time, which the process may not get, so after
// Times::patience the watch ends the process (Actions::kill). It calls `kill` without `leave` if even its own thread
// had to wait for a processor (kLate).
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "common/base/env.h"
#include "summation-service/service/guard.h"

namespace gleaner::service {

class Watch {
 public:
  struct Actions {
    std::function<std::optional<Usage>()> read;  // returns the usage so far; none: unknown
    std::function<void()> leave;                 // called once, unless `kill` is called without it
    std::function<void()> kill;                  // called at most once
  };
  struct Times {
    absl::Duration every = absl::Milliseconds(100);     // time between two samples
    absl::Duration patience = absl::Milliseconds(600);  // time between `leave` and `kill`
  };
  // A sample that comes later than this after the one before is late.
  static constexpr absl::Duration kLate = absl::Milliseconds(250);

  // The watch's thread calls `actions`.
  Watch(const Env& env, double yield_above, Actions actions) : Watch(env, yield_above, std::move(actions), Times()) {}
  Watch(const Env& env, double yield_above, Actions actions, const Times& times);
  ~Watch();  // no action is called afterwards

  // Returns the share of the processors' time that other processes took in the last window. Any thread.
  double others_share() const { return others_share_.load(std::memory_order_relaxed); }

 private:
  void run();
  bool needed();
  bool stopped_within(absl::Duration time);

  const Env env_;
  const double yield_above_;
  const Actions actions_;
  const Times times_;
  Guard guard_;            // only the watch's thread uses this member and the next two
  absl::Duration looked_;  // time of the last sample
  bool late_ = false;      // the last sample was late
  std::atomic<double> others_share_ = 0;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace gleaner::service
