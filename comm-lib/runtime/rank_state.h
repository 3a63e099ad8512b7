// RankState is the state of a rank as user threads see it: whether its session is open, why it has failed, and the
// figures that the I/O thread has published last. Thread safe; one lock per call. No other lock is taken while this one
// is held.
//
//   opening ── set_connected() ──▶ open ── close() ──▶ closed
//      └───────── fail() ───────────┴── fail() ──▶ failed
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "comm-lib/include/gleaner/gleaner.h"
#include "common/member/client.h"

namespace gleaner::runtime {

class RankState {
 public:
  explicit RankState(uint32_t local_rank) : local_rank_(local_rank) {}

  // Waits until the session is open. DeadlineExceeded: it is not open after `timeout`; the message names what the
  // session waits for. Other errors: the session has failed with this error.
  absl::Status wait_until_open(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns OK if requests may begin, and otherwise the reason for which they may not.
  absl::Status usable() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until set_quiet(true), for at most the job's deadline. Returns the error that the session has failed with.
  absl::Status wait_until_quiet() const ABSL_LOCKS_EXCLUDED(mutex_);

  gln_rank_info rank_info() const ABSL_LOCKS_EXCLUDED(mutex_);
  gln_stats stats() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::string transports() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_opening() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_elastic() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Duration deadline() const ABSL_LOCKS_EXCLUDED(mutex_);  // the job's
  // Returns the number of workers that wait for the next round of an elastic job.
  uint32_t newcomers() const { return newcomers_; }

  void set_welcome(const control::Welcome& welcome) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the number of CPU summers in the plan in force, which may be fewer than the welcome said.
  void set_summers(uint32_t summers) ABSL_LOCKS_EXCLUDED(mutex_);
  void set_newcomers(uint32_t workers) { newcomers_ = workers; }
  // Records that this rank is connected to all members, by these transports. Opens the session.
  void set_connected(std::string transports) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records whether the other members have stopped needing this rank.
  void set_quiet(bool quiet) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records the members that an opening session waits for, as the end of a sentence: "summer/0 at ...".
  void set_waiting_for(std::string description) ABSL_LOCKS_EXCLUDED(mutex_);
  void set_stats(const gln_stats& stats) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the session with an error. Returns false if the session has ended before; the first error stays.
  bool fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the session without an error, unless the session has ended before.
  void close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Phase { kOpening, kOpen, kFailed, kClosed };

  bool has_ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return phase_ == Phase::kFailed || phase_ == Phase::kClosed;
  }

  const uint32_t local_rank_;
  std::atomic<uint32_t> newcomers_{0};
  mutable absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kOpening;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool quiet_ ABSL_GUARDED_BY(mutex_) = false;
  std::string waiting_for_ ABSL_GUARDED_BY(mutex_) = "the coordinator";
  control::Welcome welcome_ ABSL_GUARDED_BY(mutex_);
  gln_stats stats_ ABSL_GUARDED_BY(mutex_) = GLN_STATS_INIT;
  std::string transports_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::runtime
