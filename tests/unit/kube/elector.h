// What election_server_test.cc runs in a process of its own.
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

// Takes part until it is killed, with its parent at the latest; returns only when it can't. Prints "leading", "lost",
// and "wrong" if it ever takes itself for the leader after a freeze longer than the lease.
int run_elector(const std::string& kubeconfig, const std::string& ns);

}  // namespace gleaner::kube
