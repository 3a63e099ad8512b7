#include "common/topology/topology.h"

#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::topology {
namespace {

absl::Status check_names(const std::vector<Host>& hosts, const std::vector<Switch>& switches) {
  absl::flat_hash_set<absl::string_view> names;
  const auto check = [&](absl::string_view kind, size_t index, const std::string& name) {
    if (name.empty()) return absl::InvalidArgumentError(absl::StrCat(kind, " ", index, " has no name"));
    if (names.insert(name).second) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the name '", name, "' occurs twice; every host and switch needs a name of its own"));
  };
  for (size_t i = 0; i < hosts.size(); ++i) GLN_RETURN_IF_ERROR(check("host", i, hosts[i].name));
  for (size_t i = 0; i < switches.size(); ++i) GLN_RETURN_IF_ERROR(check("switch", i, switches[i].name));
  return absl::OkStatus();
}

absl::Status check_link(const Link& link, size_t index, size_t nodes) {
  const std::string name = absl::StrCat("link ", index);
  if (link.a >= nodes || link.b >= nodes) {
    return absl::InvalidArgumentError(absl::StrCat(name, " ends at node ", link.a >= nodes ? link.a : link.b,
                                                   "; there are ", nodes, " hosts and switches"));
  }
  if (link.a == link.b) return absl::InvalidArgumentError(absl::StrCat(name, " has the same node at both ends"));
  for (const double bandwidth : {link.bits_per_second, link.back_bits_per_second}) {
    if (std::isfinite(bandwidth) && bandwidth > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has the bandwidth ", bandwidth, "; give bits per second above 0, or leave the link out"));
  }
  if (!std::isfinite(link.latency_seconds) || link.latency_seconds < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has the latency ", link.latency_seconds, " s; give 0 or more"));
  }
  return absl::OkStatus();
}

// Checks that every host is reached from the first host. Paths lead through a host only at their ends, unless there is
// no switch.
absl::Status check_connected(const Topology& topology) {
  std::vector<bool> reached(topology.node_count(), false);
  std::vector<uint32_t> open = {0};
  reached[0] = true;
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    if (node != 0 && topology.is_host(node) && !topology.switches().empty()) continue;
    for (const Topology::Neighbour& next : topology.neighbours(node)) {
      if (reached[next.node]) continue;
      reached[next.node] = true;
      open.push_back(next.node);
    }
  }
  for (uint32_t host = 0; host < topology.host_count(); ++host) {
    if (reached[host]) continue;
    return absl::InvalidArgumentError(absl::StrCat("no path leads from host '", topology.name(0), "' to host '",
                                                   topology.name(host), "'; add the links that join them"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Topology> Topology::make(std::vector<Host> hosts, std::vector<Switch> switches,
                                        std::vector<Link> links) {
  if (hosts.empty()) return absl::InvalidArgumentError("the topology has no host");
  if (hosts.size() > kMaxHosts) {
    return absl::InvalidArgumentError(absl::StrCat("the topology has ", hosts.size(), " hosts; at most ", kMaxHosts));
  }
  GLN_RETURN_IF_ERROR(check_names(hosts, switches));
  Topology topology;
  topology.hosts_ = std::move(hosts);
  topology.switches_ = std::move(switches);
  topology.links_ = std::move(links);
  for (size_t i = 0; i < topology.links_.size(); ++i) {
    GLN_RETURN_IF_ERROR(check_link(topology.links_[i], i, topology.node_count()));
  }
  topology.index_neighbours();
  GLN_RETURN_IF_ERROR(check_connected(topology));
  return topology;
}

void Topology::index_neighbours() {
  first_.assign(node_count() + 1, 0);
  for (uint32_t channel = 0; channel < channel_count(); ++channel) ++first_[from(channel) + 1];
  for (uint32_t node = 0; node < node_count(); ++node) first_[node + 1] += first_[node];
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  neighbours_.resize(channel_count());
  for (uint32_t channel = 0; channel < channel_count(); ++channel) {
    neighbours_[next[from(channel)]++] = {to(channel), channel};
  }
}

const std::string& Topology::name(uint32_t node) const {
  return is_host(node) ? hosts_[node].name : switches_[node - hosts_.size()].name;
}

std::span<const Topology::Neighbour> Topology::neighbours(uint32_t node) const {
  return std::span(neighbours_).subspan(first_[node], first_[node + 1] - first_[node]);
}

}  // namespace gleaner::topology
