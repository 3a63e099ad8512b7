#include "comm-lib/runtime/io_loop.h"

#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace gleaner::runtime {
namespace {

constexpr absl::Duration kShortWait = absl::Milliseconds(5);
constexpr absl::Duration kSleepAfter = absl::Milliseconds(50);

}  // namespace

absl::Status IoLoop::start() {
  GLN_ASSIGN_OR_RETURN(thread_, start_thread("gln-io", [this] { run(); }));
  return absl::OkStatus();
}

void IoLoop::stop() {
  if (thread_.joinable()) {
    stopping_ = true;
    work_.wake();
    thread_.join();
  }
  mailbox_.close();
}

void IoLoop::run() {
  while (!stopping_) {
    absl::Duration wait;
    {
      absl::MutexLock lock(&turn_);
      wait = next_wait(work_.run_round());
    }
    work_.after_round();
    work_.wait_for_work(wait);
  }
  // Messages posted before the stop must still run: the last report, failures.
  absl::MutexLock lock(&turn_);
  mailbox_.drain();
}

absl::Duration IoLoop::next_wait(Load load) {
  asleep_ = false;
  if (load == Load::kWork) return absl::ZeroDuration();
  const absl::Duration now = clock_.since_start();
  if (load == Load::kInFlight) last_busy_ = now;
  asleep_ = now - last_busy_ > kSleepAfter;
  return asleep_ ? longest_wait_ : kShortWait;
}

}  // namespace gleaner::runtime
