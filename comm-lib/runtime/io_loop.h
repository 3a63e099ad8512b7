// IoLoop is the loop of a rank's I/O thread, named "gln-io". It owns the *turn*: a lock on all objects that the loop
// works on. The I/O thread holds the turn during a round and releases it while it waits, so another thread may take the
// turn then.
//
// Other threads pass their work to the loop by post(). Messages run in order, with the turn held.
//
// After a round that leaves no work, the loop waits. Within 50 ms after the last work, waits are short (5 ms), so the
// thread that begins the next request need not wake the I/O thread. After that the loop *sleeps*: it waits longer than
// requests in flight allow, and must be woken.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/base/mailbox.h"

namespace gleaner::runtime {

class IoLoop {
 public:
  enum class Load { kIdle, kInFlight, kWork };  // kWork: the next round has work that needs no wait

  // The functions that the loop runs. It calls all but wake() on the I/O thread.
  class Work {
   public:
    virtual ~Work() = default;
    // Does the work that can be done now, and calls drain(). The turn is held.
    virtual Load run_round() = 0;
    // Follows each round, after the turn is released.
    virtual void after_round() = 0;
    // Waits until there is work, wake() is called or `timeout` has passed. The turn is not held.
    virtual void wait_for_work(absl::Duration timeout) = 0;
    virtual void wake() = 0;  // any thread; ends the current wait_for_work(), or else the next one
  };

  // `clock` and `work` must outlive the loop. `longest_wait`: limit of a wait.
  IoLoop(const Clock* clock, absl::Duration longest_wait, Work* work)
      : clock_(*clock), longest_wait_(longest_wait), work_(*work), mailbox_([work] { work->wake(); }) {}
  ~IoLoop() { stop(); }
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  absl::Status start();  // ResourceExhausted: see start_thread()
  // Ends the thread, which first runs the messages posted before. Drops later messages.
  void stop();
  void post(std::function<void()> message) { mailbox_.post(std::move(message)); }

  absl::Mutex& turn() ABSL_LOCK_RETURNED(turn_) { return turn_; }
  // For the thread that holds the turn:
  void drain() { mailbox_.drain(); }  // runs the posted messages
  bool nothing_posted() const { return mailbox_.empty(); }
  bool is_asleep() const { return asleep_; }

 private:
  void run();
  absl::Duration next_wait(Load load);

  const Clock& clock_;
  const absl::Duration longest_wait_;
  Work& work_;
  absl::Mutex turn_;
  Mailbox mailbox_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  // Written with the turn held.
  absl::Duration last_busy_;
  bool asleep_ = false;
};

}  // namespace gleaner::runtime
