#include "agent/measurements.h"

#include <algorithm>
#include <utility>

#include "agent/probe/measure.h"
#include "agent/probe/representatives.h"
#include "common/base/backoff.h"
#include "common/base/own_network.h"
#include "common/base/status_macros.h"
#include "common/kube/resource.h"

namespace gleaner::agent {
namespace {

constexpr absl::Duration kReadTimeout = absl::Seconds(10);
constexpr absl::Duration kLookUpPeriod = absl::Minutes(1);
constexpr absl::Duration kGroupsPeriod = absl::Minutes(10);

// Returns the address by which other agents know this one: that at which it listens, or that of the `hosts` which is an
// address of this machine, or the one from which it sends to them.
absl::StatusOr<std::string> own_host(const Address& listen, const std::vector<std::string>& hosts) {
  if (!is_unspecified(listen.host) || hosts.empty()) return listen.host;
  for (const std::string& host : hosts) {
    if (source_host({host, listen.port}).value_or("") == host) return host;
  }
  return source_host({hosts.front(), listen.port});
}

bool is_v6(const std::string& host) { return host.find(':') != std::string::npos; }

}  // namespace

Measurements::Measurements(const Env& env, kube::Client& client, const probe::PeerProbe::Options& options,
                           const std::string& node, prometheus::Registry& registry)
    : env_(env),
      options_(options),
      node_(node),
      client_(client.bounded(kReadTimeout, &cancel_)),
      latency_metrics_(registry, node),
      bandwidth_metrics_(registry, node) {}

Measurements::~Measurements() { cancel_.cancel(); }

absl::StatusOr<std::unique_ptr<Measurements>> Measurements::start(const Env& env, kube::Client& client,
                                                                  const probe::PeerProbe::Options& options,
                                                                  const std::string& node,
                                                                  prometheus::Registry& registry) {
  std::unique_ptr<Measurements> made(new Measurements(env, client, options, node, registry));
  GLN_RETURN_IF_ERROR(made->begin());
  return made;
}

absl::Status Measurements::begin() {
  GLN_ASSIGN_OR_RETURN(speed_, probe::PeerProbe::start(env_, options_, budget_));
  GLN_ASSIGN_OR_RETURN(latencies_, probe::LatencyProbe::start(env_, {.listen = speed_->address(),
                                                                     .peer_port = options_.peers.port,
                                                                     .secret = options_.secret,
                                                                     .node = node_}));
  bandwidths_.emplace(env_, probe::BandwidthProbe::Options{options_.peers.port, options_.secret}, budget_);
  finder_.emplace("gln-peers", kLookUpPeriod, Periodic::First::kNow, [this] { look_up(); });
  return absl::OkStatus();
}

// Looks up the other agents. After an error those known so far stay, since they may still be there.
void Measurements::look_up() {
  const absl::Status status = find_peers();
  const std::string error(status.message());
  if (error != told_error_ && !status.ok()) env_.log->warning("can't look up the other agents", "why", error);
  told_error_ = error;
}

absl::Status Measurements::find_peers() {
  GLN_ASSIGN_OR_RETURN(const std::vector<Address> found, probe::resolve(options_.peers));
  const Address listen = speed_->address();
  std::vector<std::string> hosts;
  for (const Address& address : found) {
    if (is_v6(address.host) == is_v6(listen.host)) hosts.push_back(address.host);
  }
  GLN_ASSIGN_OR_RETURN(const std::string own, own_host(listen, hosts));
  probe::AgentOrder agents = probe::in_order(std::move(hosts), own);
  if (env_.clock->since_start() >= groups_due_) read_groups();
  probe::Texts node_of = latencies_->node_names();
  node_of[own] = node_;
  choose_bandwidth_peers(node_of);
  std::vector<probe::Need> needs = probe::choose_peers(agents, node_of, group_of_);
  latencies_->set_peers({std::move(agents), std::move(needs)});
  return absl::OkStatus();
}

// Reads the groups of the Topology. After an error those known so far stay, unless there is no Topology any more.
void Measurements::read_groups() {
  groups_due_ = env_.clock->since_start() + jittered(*env_.random, kGroupsPeriod);
  const absl::StatusOr<kube::Object> object = client_->get(kube::topologies(), "", api::kTopologyName);
  absl::StatusOr<api::Topology> topology =
      object.ok() ? api::parse_topology(*object) : absl::StatusOr<api::Topology>(object.status());
  if (absl::IsNotFound(topology.status())) topology = api::Topology();
  if (!topology.ok()) {
    env_.log->debug("the groups of near nodes are not known", "why", topology.status().message());
    return;
  }
  topology_ = std::move(topology->status);
  group_of_ = probe::group_of_nodes(*topology_);
}

void Measurements::choose_bandwidth_peers(const probe::Texts& node_of) {
  if (!topology_.has_value()) return;  // restored entries stay until the groups are known
  probe::BandwidthPeers peers;
  for (const auto& [host, node] : node_of) peers.host_of[node] = host;
  for (const auto& [node, group] : group_of_) peers.grouped.insert(node);
  peers.nodes = probe::bandwidth_peers(*topology_, peers.host_of, node_);
  bandwidths_->set_peers(std::move(peers));
}

void Measurements::set_nic(double speed, double used) {
  latencies_->set_bits_per_second(speed);
  budget_.set_nic(speed, used);
}

void Measurements::show(api::NodeProfileStatus& status) const {
  status.peers = latencies_->report().entries;
  status.peer_bandwidths = bandwidths_->report().entries;
}

void Measurements::show_metrics() {
  latency_metrics_.show(latencies_->report());
  bandwidth_metrics_.show(bandwidths_->report());
}

absl::Status Measurements::restore() {
  if (restored_) return absl::OkStatus();
  const absl::StatusOr<kube::Object> object = client_->get(kube::node_profiles(), "", node_);
  if (!object.ok() && !absl::IsNotFound(object.status())) return object.status();
  restored_ = true;
  if (!object.ok()) return absl::OkStatus();
  const absl::StatusOr<api::NodeProfile> profile = api::parse_node_profile(*object);
  if (profile.ok()) {
    latencies_->restore(profile->status.peers);
    bandwidths_->restore(profile->status.peer_bandwidths);
  } else {
    env_.log->warning("the profile's latencies and bandwidths can't be read and are measured again", "why",
                      profile.status().message());
  }
  return absl::OkStatus();
}

}  // namespace gleaner::agent
