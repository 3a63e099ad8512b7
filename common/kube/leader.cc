#include "common/kube/leader.h"

#include <algorithm>
#include <utility>

#include "common/base/backoff.h"
#include "common/base/thread.h"
#include "common/kube/object.h"

namespace gleaner::kube {

LeaderElection::LeaderElection(const Env& env, Client& client, Options options)
    : env_(env),
      options_(std::move(options)),
      // A call that hangs must leave time for another call, which may reach another API server.
      client_(client.bounded(options_.renew_deadline / 2, &cancel_)),
      releaser_(client.bounded(options_.retry_period, nullptr)),
      renewer_([this] { renew_until_stopped(); }),
      keeper_([this] { keep(); }) {}

bool LeaderElection::is_leader() const {
  absl::MutexLock lock(&mutex_);
  return state_ == State::kLeading && env_.clock->since_start() < renewed_at_ + options_.renew_deadline;
}

uint64_t LeaderElection::term() const {
  absl::MutexLock lock(&mutex_);
  return term_;
}

// Waits until this replica is the leader, then until it no longer is.
void LeaderElection::keep() {
  name_this_thread("gln-lease");
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &LeaderElection::has_won_or_ended));
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
        mutex_.AwaitWithTimeout(absl::Condition(this, &LeaderElection::is_over), left);
      }
    }
    if (state_ == State::kReleased) return;
  }
  cancel_.cancel();
  env_.log->error("the lease is lost; another replica may be the leader now", "lease", options_.name, "identity",
                  options_.identity);
  if (options_.on_lost) options_.on_lost();
}

void LeaderElection::renew_until_stopped() {
  name_this_thread("gln-renew");
  while (true) {
    attempt();
    absl::MutexLock lock(&mutex_);
    absl::Duration pause = options_.retry_period;
    // Keeps waiting replicas from trying at the same time.
    if (state_ == State::kWaiting) pause = jittered(*env_.random, pause);
    if (mutex_.AwaitWithTimeout(absl::Condition(this, &LeaderElection::is_over), pause)) return;
  }
}

// Tries once to get or to renew the lease.
void LeaderElection::attempt() {
  const absl::Duration start = env_.clock->since_start();
  absl::StatusOr<Object> current = lease_.is_null() ? read() : lease_;
  if (!current.ok()) return;
  lease_ = *std::move(current);
  if (!lease_.empty()) {
    record_.observe(lease_, env_.clock->since_start());
    if (!record_.is_open_to(options_.identity, env_.clock->since_start())) {
      lease_ = nullptr;  // makes the next attempt read the Lease again
      absl::MutexLock lock(&mutex_);
      if (state_ == State::kLeading) state_ = State::kLost;  // another replica has taken the lease
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
  // If this process was frozen for too long between two renewals, another replica may have been the leader meanwhile,
  // even though this write succeeded.
  const bool too_late = state_ == State::kLeading && env_.clock->since_start() >= renewed_at_ + options_.renew_deadline;
  state_ = too_late ? State::kLost : State::kLeading;
  if (too_late) return;
  renewed_at_ = start;
  term_ = ElectionRecord::term(lease_);
}

// Returns an empty object if there is no Lease yet.
absl::StatusOr<Object> LeaderElection::read() {
  auto lease = client_->get(leases(), options_.ns, options_.name);
  if (absl::IsNotFound(lease.status())) return Object::object();
  return lease;
}

absl::StatusOr<Object> LeaderElection::write(const Object& lease) {
  return lease_.empty() ? client_->create(leases(), lease) : client_->replace(leases(), lease);
}

void LeaderElection::release() {
  bool was_leading = false;
  {
    absl::MutexLock lock(&mutex_);
    was_leading = state_ == State::kLeading;
    if (!is_over()) state_ = State::kReleased;
  }
  cancel_.cancel();
  if (renewer_.joinable()) renewer_.join();
  if (keeper_.joinable()) keeper_.join();
  if (!was_leading) return;
  // The last renewal may have been cancelled; `lease_` is then outdated or null.
  auto lease =
      lease_.is_object() ? absl::StatusOr<Object>(lease_) : releaser_->get(leases(), options_.ns, options_.name);
  for (int tries = 0; tries < 2 && lease.ok(); ++tries) {
    if (text_at(*lease, {"spec", "holderIdentity"}) != options_.identity) return;
    const auto released = releaser_->replace(leases(), ElectionRecord::released(*lease, env_.clock->now()));
    if (released.ok()) return;
    lease = absl::IsAborted(released.status()) ? releaser_->get(leases(), options_.ns, options_.name) : released;
  }
  env_.log->warning("the lease could not be released; another replica waits until it expires", "lease", options_.name);
}

std::unique_ptr<LeaderElection> LeaderElection::start(const Env& env, Client& client, Options options) {
  return std::unique_ptr<LeaderElection>(new LeaderElection(env, client, std::move(options)));
}

}  // namespace gleaner::kube
