// A candidate of a leader election, which election_server_test.cc runs in a separate process.
#pragma once

#include <string>

#include "common/kube/leader.h"

namespace gleaner::kube {

constexpr char kElectorMode[] = "--elector";

inline LeaderElection::Options quick_election(const std::string& ns, const std::string& identity) {
  return {.ns = ns,
          .name = "leader",
          .identity = identity,
          .lease_duration = absl::Seconds(2),
          .renew_deadline = absl::Seconds(1),
          .retry_period = absl::Milliseconds(200)};
}

// Takes part in the election until it is killed, or its parent ends; returns only if it can't take part. Prints
// "leading" and "lost", and prints "wrong" if it ever believes to be the leader after it was frozen for longer than the
// lease.
int run_elector(const std::string& kubeconfig, const std::string& ns);

}  // namespace gleaner::kube
