// Which of several replicas acts: holds a coordination.k8s.io Lease as kube-controller-manager does.
//
// A holder that can't renew within renew_deadline must be taken for gone by itself before others may take over after
// lease_duration: on_lost is called then, and the process is expected to end at once. Observed times count, not the
// clock times written in the lease, so that clock steps and skew do no harm. A holder that was frozen knows when it
// wakes that it is none any more. Single calls to the API server take half of renew_deadline at most. Who may be
// elected needs get, create and update of the Lease.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/client.h"

namespace gleaner::kube {

class LeaderElection {
 public:
  struct Options {
    std::string ns, name;  // of the Lease
    std::string identity;  // unique among replicas: pod name and uid
    absl::Duration lease_duration = absl::Seconds(15);
    absl::Duration renew_deadline = absl::Seconds(10);
    absl::Duration retry_period = absl::Seconds(2);
    std::function<void()> on_acquired;  // on the election's thread, must return
    std::function<void()> on_lost;      // the same; not called by release()
  };
  static std::unique_ptr<LeaderElection> start(const Env& env, Client& client, Options options);
  virtual ~LeaderElection() = default;  // as release()
  virtual bool is_leader() const = 0;
  // Of the last time that it became the leader: above that of every leader before it. 0: it never did.
  virtual uint64_t term() const = 0;
  // Gives the lease up, so that another replica need not wait. Idempotent. Not from on_acquired or on_lost.
  virtual void release() = 0;
};

}  // namespace gleaner::kube
