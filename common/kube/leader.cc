#include "common/kube/leader.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "common/base/thread.h"
#include "common/kube/backoff.h"
#include "common/kube/election_record.h"
#include "common/kube/object.h"

namespace gleaner::kube {
namespace {

// Two threads: "gln-lease" decides and calls back, and is never kept by the network; "gln-renew" reads and writes.
class ThreadedElection : public LeaderElection {
 public:
  ThreadedElection(const Env& env, Client& client, Options options)
      : env_(env),
        options_(std::move(options)),
        cancel_(client.make_cancel()),
        // A call that hangs must leave time for another one, to another API server perhaps.
        client_(client.bounded(options_.renew_deadline / 2, cancel_.get())),
        releaser_(client.bounded(options_.retry_period, nullptr)),
        renewer_([this] { renew_until_stopped(); }),
        keeper_([this] { keep(); }) {}

  ~ThreadedElection() override { release(); }

  bool is_leader() const override {
    absl::MutexLock lock(&mutex_);
    return state_ == State::kLeading && env_.clock->since_start() < renewed_at_ + options_.renew_deadline;
  }

  uint64_t term() const override {
    absl::MutexLock lock(&mutex_);
    return term_;
  }

  void release() override;

 private:
  enum class State { kWaiting, kLeading, kLost, kReleased };

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
  const std::unique_ptr<Client::Cancel> cancel_;
  const std::unique_ptr<Client> client_;
  const std::unique_ptr<Client> releaser_;

  // The renewer's own, and release()'s once that thread has ended.
  ElectionRecord record_;
  Object lease_;  // as last read or written; null: not known

  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kWaiting;
  absl::Duration renewed_at_ ABSL_GUARDED_BY(mutex_);  // when the last write that succeeded was begun
  uint64_t term_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread renewer_;
  std::thread keeper_;
};

// Waits for the lease, then for its end.
void ThreadedElection::keep() {
  name_this_thread("gln-lease");
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &ThreadedElection::has_won_or_ended));
    if (state_ == State::kReleased) return;
  }
  env_.log->info("leading", "lease", options_.name, "identity", options_.identity);
  if (options_.on_acquired) options_.on_acquired();
  {
    absl::MutexLock lock(&mutex_);
    while (!is_over()) {
      const absl::Duration left = renewed_at_ + options_.renew_deadline - env_.clock->since_start();
      if (left <= absl::ZeroDuration()) {
        state_ = State::kLost;
      } else {
        mutex_.AwaitWithTimeout(absl::Condition(this, &ThreadedElection::is_over), left);
      }
    }
    if (state_ == State::kReleased) return;
  }
  cancel_->cancel();
  env_.log->error("the lease is lost, another replica may act now", "lease", options_.name, "identity",
                  options_.identity);
  if (options_.on_lost) options_.on_lost();
}

void ThreadedElection::renew_until_stopped() {
  name_this_thread("gln-renew");
  while (true) {
    attempt();
    absl::MutexLock lock(&mutex_);
    absl::Duration pause = options_.retry_period;
    if (state_ == State::kWaiting) pause = jittered(*env_.random, pause);  // not all of those who wait at once
    if (mutex_.AwaitWithTimeout(absl::Condition(this, &ThreadedElection::is_over), pause)) return;
  }
}

// One try to get or to keep the lease.
void ThreadedElection::attempt() {
  const absl::Duration start = env_.clock->since_start();
  absl::StatusOr<Object> current = lease_.is_null() ? read() : lease_;
  if (!current.ok()) return;
  lease_ = *std::move(current);
  if (!lease_.empty()) {
    record_.observe(lease_, env_.clock->since_start());
    if (!record_.is_open_to(options_.identity, env_.clock->since_start())) {
      lease_ = nullptr;  // read it again next time
      absl::MutexLock lock(&mutex_);
      if (state_ == State::kLeading) state_ = State::kLost;  // somebody took it from us
      return;
    }
  }
  auto written = write(ElectionRecord::claimed(lease_, options_.ns, options_.name, options_.identity,
                                               options_.lease_duration, env_.clock->now()));
  if (!written.ok()) {
    lease_ = nullptr;
    env_.log->debug("the lease was not written", "lease", options_.name, "why", written.status().ToString());
    return;
  }
  lease_ = *std::move(written);
  record_.observe(lease_, env_.clock->since_start());
  absl::MutexLock lock(&mutex_);
  if (is_over()) return;
  // Frozen between two renewals for too long: whatever the write says now, we have been taken for gone.
  const bool too_late = state_ == State::kLeading && env_.clock->since_start() >= renewed_at_ + options_.renew_deadline;
  state_ = too_late ? State::kLost : State::kLeading;
  if (too_late) return;
  renewed_at_ = start;
  term_ = ElectionRecord::term(lease_);
}

// An empty object when there is no Lease yet.
absl::StatusOr<Object> ThreadedElection::read() {
  auto lease = client_->get(leases(), options_.ns, options_.name);
  if (absl::IsNotFound(lease.status())) return Object::object();
  return lease;
}

absl::StatusOr<Object> ThreadedElection::write(const Object& lease) {
  return lease_.empty() ? client_->create(leases(), lease) : client_->replace(leases(), lease);
}

void ThreadedElection::release() {
  bool was_leading = false;
  {
    absl::MutexLock lock(&mutex_);
    was_leading = state_ == State::kLeading;
    if (!is_over()) state_ = State::kReleased;
  }
  cancel_->cancel();
  if (renewer_.joinable()) renewer_.join();
  if (keeper_.joinable()) keeper_.join();
  if (!was_leading) return;
  // The last renewal may have been cut off: then what we know of the lease is too old, or nothing.
  auto lease =
      lease_.is_object() ? absl::StatusOr<Object>(lease_) : releaser_->get(leases(), options_.ns, options_.name);
  for (int tries = 0; tries < 2 && lease.ok(); ++tries) {
    if (text_at(*lease, {"spec", "holderIdentity"}) != options_.identity) return;
    const auto released = releaser_->replace(leases(), ElectionRecord::released(*lease, env_.clock->now()));
    if (released.ok()) return;
    lease = absl::IsAborted(released.status()) ? releaser_->get(leases(), options_.ns, options_.name) : released;
  }
  env_.log->warning("the lease could not be given up; another replica waits until it runs out", "lease", options_.name);
}

}  // namespace

std::unique_ptr<LeaderElection> LeaderElection::start(const Env& env, Client& client, Options options) {
  return std::make_unique<ThreadedElection>(env, client, std::move(options));
}

}  // namespace gleaner::kube
