// Measurements measures the network together with the agents of other nodes, for an Agent with --measure-*: the speed
// of this node's NIC (probe::PeerProbe), the latencies to other nodes (probe::LatencyProbe) and the bandwidths to a few
// of them (probe::BandwidthProbe).
//
// Beside their threads it has "gln-peers", which looks up the addresses of all agents once a minute, and reads the
// groups of near nodes from the Topology about every ten minutes. No groups are known where there is no Topology, or
// where the agent may not read it: then no bandwidths are measured. Thread safe.
#pragma once

#include <prometheus/registry.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/probe/bandwidth_probe.h"
#include "agent/probe/latency_probe.h"
#include "agent/probe/load_budget.h"
#include "agent/probe/peer_probe.h"
#include "agent/publish/bandwidth_metrics.h"
#include "agent/publish/latency_metrics.h"
#include "common/api/node_profile.h"
#include "common/api/topology.h"
#include "common/base/env.h"
#include "common/base/periodic.h"
#include "common/kube/cancellation.h"
#include "common/kube/client.h"

namespace gleaner::agent {

class Measurements {
 public:
  // `env`, `client` and `registry` must outlive the object. `node` is the name of this agent's node. Unavailable: the
  // address at which to listen is in use, by TCP or by UDP. InvalidArgument: the node's name is invalid, or this
  // machine does not have the address.
  static absl::StatusOr<std::unique_ptr<Measurements>> start(const Env& env, kube::Client& client,
                                                             const probe::PeerProbe::Options& options,
                                                             const std::string& node, prometheus::Registry& registry);
  ~Measurements();  // waits for measurements over TCP and a name lookup in progress, and cancels calls of the API
                    // server

  probe::PeerProbe& speed() { return *speed_; }

  // Restores the latencies and bandwidths of the node's profile, which an earlier process of this agent has written,
  // unless it has done so before. An error means that the profile could not be read: the caller tries again before it
  // overwrites the profile. Called by one thread.
  absl::Status restore();

  // Sets the NIC's speed (0: unknown) and its use in the busier direction, in bits per second.
  void set_nic(double speed, double used);
  // Sets the entries of the latencies and bandwidths to other nodes.
  void show(api::NodeProfileStatus& status) const;
  void show_metrics();  // called by one thread

 private:
  Measurements(const Env& env, kube::Client& client, const probe::PeerProbe::Options& options, const std::string& node,
               prometheus::Registry& registry);
  absl::Status begin();
  void look_up();
  absl::Status find_peers();
  void read_groups();
  void choose_bandwidth_peers(const probe::Texts& node_of);

  const Env env_;
  const probe::PeerProbe::Options options_;
  const std::string node_;
  kube::Cancellation cancel_;
  const std::unique_ptr<kube::Client> client_;
  publish::LatencyMetrics latency_metrics_;
  publish::BandwidthMetrics bandwidth_metrics_;
  probe::LoadBudget budget_;  // of speed_ and bandwidths_
  std::unique_ptr<probe::PeerProbe> speed_;
  std::unique_ptr<probe::LatencyProbe> latencies_;
  std::optional<probe::BandwidthProbe> bandwidths_;
  bool restored_ = false;  // used by the callers of restore()

  // The members below are used by "gln-peers" only.
  std::string told_error_;                            // of the last look-up
  std::optional<api::TopologyStatus> topology_;       // absent: not read yet
  probe::Texts group_of_;                             // by node
  absl::Duration groups_due_ = absl::ZeroDuration();  // when to read the groups again
  std::optional<Periodic> finder_;                    // declared last, since it uses all members above
};

}  // namespace gleaner::agent
