// LeaderElection elects one of several replicas by a coordination.k8s.io Lease, by the rules of
// kube-controller-manager.
//
// A leader that can't renew its lease within renew_deadline stops being the leader. Another replica can take over only
// after lease_duration, which is longer. LeaderElection then calls on_lost, and the process must end immediately. Each
// replica measures the time since it observed the last change of the Lease, by its own monotonic clock. It does not use
// the times in the Lease, so clock steps and skew do no harm. A leader that was frozen finds out when it resumes that
// its time is over. A single call to the API server takes at most half of renew_deadline. Candidates need permission to
// get, create and update the Lease.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/cancellation.h"
#include "common/kube/client.h"
#include "common/kube/election_record.h"

namespace gleaner::kube {

class LeaderElection {
 public:
  struct Options {
    std::string ns, name;  // of the Lease
    std::string identity;  // unique among replicas: pod name and uid
    absl::Duration lease_duration = absl::Seconds(15);
    absl::Duration renew_deadline = absl::Seconds(10);
    absl::Duration retry_period = absl::Seconds(2);
    std::function<void()> on_acquired;  // called on the election's thread; must return
    std::function<void()> on_lost;      // called on the election's thread; not called by release()
  };
  // `env` and `client` must outlive the election.
  static std::unique_ptr<LeaderElection> start(const Env& env, Client& client, Options options);
  ~LeaderElection() { release(); }
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;
  bool is_leader() const;
  // Returns the term (election_record.h) of the last time that this replica became the leader. The term is higher than
  // that of every earlier leader. 0: this replica never was the leader.
  uint64_t term() const;
  // Releases the lease, so that another replica need not wait. Idempotent. Must not be called from on_acquired or
  // on_lost.
  void release();

 private:
  enum class State { kWaiting, kLeading, kLost, kReleased };

  LeaderElection(const Env& env, Client& client, Options options);
  void keep();
  void renew_until_stopped();
  void attempt();
  absl::StatusOr<Object> read();
  absl::StatusOr<Object> write(const Object& lease);
  bool has_won_or_ended() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return state_ != State::kWaiting; }
  bool is_over() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return state_ == State::kLost || state_ == State::kReleased;
  }

  const Env env_;
  const Options options_;
  Cancellation cancel_;
  const std::unique_ptr<Client> client_;
  const std::unique_ptr<Client> releaser_;

  // Used by the renewer's thread only, and by release() once that thread has ended.
  ElectionRecord record_;
  Object lease_;  // as last read or written; null: unknown

  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kWaiting;
  absl::Duration renewed_at_ ABSL_GUARDED_BY(mutex_);  // start time of the last successful write
  uint64_t term_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread renewer_;  // "gln-renew": reads and writes the Lease
  std::thread keeper_;   // decides and calls on_acquired and on_lost, and never waits for the network
};

}  // namespace gleaner::kube
