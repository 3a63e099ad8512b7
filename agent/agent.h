// The node's agent at work: samples the machine once a second, publishes its profile when that has changed noticeably
// or every 30 s, and advertises room for summers on its node.
//
// Two threads: "gln-sample" reads and estimates and never waits for the API server; "gln-publish" writes. While the
// server is away sampling goes on, and the profile is written when it is back.
#pragma once

#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/discover/machine.h"
#include "agent/probe/peer_probe.h"
#include "common/base/env.h"
#include "common/kube/client.h"

namespace gleaner::agent {

struct AgentOptions {
  std::string node;  // the Node object's name
  std::string version;
  discover::MachineSource source;
  std::string cgroup_root = "/";
  double bits_per_second = 0;                        // --bandwidth; 0: not said
  std::optional<probe::PeerProbe::Options> measure;  // none: never
  double margin = 0.1;                               // of everything, never spared
  uint32_t summers_per_node = 4;
  absl::Duration sample_period = absl::Seconds(1);
  absl::Duration discover_period = absl::Minutes(1);
  absl::Duration publish_period = absl::Seconds(30);
  absl::Duration publish_at_most = absl::Seconds(5);  // between two writes for a noticeable change
};

class Agent {
 public:
  // `env`, `client` and `registry` outlive the agent. Internal: hwloc fails on this machine.
  static absl::StatusOr<std::unique_ptr<Agent>> start(const Env& env, kube::Client& client, AgentOptions options,
                                                      prometheus::Registry& registry);
  virtual ~Agent() = default;  // ends both threads, and the write that runs

  // Empty: the profile was written within the last two minutes. Else why it was not. Thread safe.
  virtual std::string why_not_ready() const = 0;
};

// The profile of this machine after two samples, `pause` apart, without a cluster: all of the machine counts as
// allocatable, and nothing as requested.
absl::StatusOr<types::NodeProfile> profile_once(const Env& env, const AgentOptions& options, absl::Duration pause);

}  // namespace gleaner::agent
