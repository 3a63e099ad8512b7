#include "common/topology/topology.h"

#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"

namespace gleaner::topology {
namespace {

absl::Status check_names(const std::vector<Host>& hosts, const std::vector<Switch>& switches) {
  absl::flat_hash_set<absl::string_view> names;
  const auto check = [&](absl::string_view kind, size_t index, const std::string& name) {
    if (name.empty()) return absl::InvalidArgumentError(absl::StrCat(kind, " ", index, " has no name"));
    GLN_RETURN_IF_ERROR(check_name(absl::StrCat("the name of ", kind, " ", index), name));
    if (names.insert(name).second) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the name '", name, "' occurs twice; every host and switch needs a name of its own"));
  };
  for (size_t i = 0; i < hosts.size(); ++i) GLN_RETURN_IF_ERROR(check("host", i, hosts[i].name));
  for (size_t i = 0; i < switches.size(); ++i) GLN_RETURN_IF_ERROR(check("switch", i, switches[i].name));
  return absl::OkStatus();
}

absl::Status check_host(const Host& host) {
  if (std::isfinite(host.overhead_seconds) && host.overhead_seconds >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("host '", host.name, "' has the overhead ", host.overhead_seconds, " s; give 0 or more"));
}

absl::Status check_link(const Link& link, size_t index, size_t nodes) {
  const auto wrong = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("link ", index, " ", parts...));
  };
  if (link.a >= nodes || link.b >= nodes) {
    return wrong("ends at node ", link.a >= nodes ? link.a : link.b, "; there are ", nodes, " hosts and switches");
  }
  if (link.a == link.b) return wrong("has the same node at both ends");
  for (const double bandwidth : {link.bits_per_second, link.back_bits_per_second}) {
    if (std::isfinite(bandwidth) && bandwidth > 0) continue;
    return wrong("has the bandwidth ", bandwidth, "; give bits per second above 0, or leave the link out");
  }
  if (!std::isfinite(link.latency_seconds) || link.latency_seconds < 0) {
    return wrong("has the latency ", link.latency_seconds, " s; give 0 or more");
  }
  return absl::OkStatus();
}

// Returns the number of the connected part of each node that forwards: of each switch, or of each host if there is no
// switch. Other nodes have the number UINT32_MAX.
std::vector<uint32_t> parts_of(const Topology& topology) {
  const uint32_t first = topology.switches().empty() ? 0 : topology.host_count();
  std::vector<uint32_t> parts(topology.node_count(), UINT32_MAX), open;
  uint32_t count = 0;
  for (uint32_t begin = first; begin < topology.node_count(); ++begin) {
    if (parts[begin] != UINT32_MAX) continue;
    parts[begin] = count;
    open.push_back(begin);
    while (!open.empty()) {
      const uint32_t node = open.back();
      open.pop_back();
      for (const Topology::Neighbour& next : topology.neighbours(node)) {
        if (next.node < first || parts[next.node] != UINT32_MAX) continue;
        parts[next.node] = count;
        open.push_back(next.node);
      }
    }
    ++count;
  }
  return parts;
}

absl::Status no_path(const Topology& topology, uint32_t from, uint32_t to) {
  return absl::InvalidArgumentError(absl::StrCat("no path leads from host '", topology.name(from), "' to host '",
                                                 topology.name(to), "'; add the links that join them",
                                                 topology.switches().empty() ? "" : " (hosts do not forward)"));
}

// Checks that every host reaches every other one. Hosts may have links to several parts of the network, so it does not
// suffice that one host reaches all others.
absl::Status check_connected(const Topology& topology) {
  const uint32_t hosts = topology.host_count();
  const std::vector<uint32_t> parts = parts_of(topology);
  std::vector<std::vector<uint32_t>> members;  // by part: its hosts
  const auto add = [&](uint32_t part, uint32_t host) {
    if (part == UINT32_MAX) return;
    if (part >= members.size()) members.resize(part + 1);
    if (members[part].empty() || members[part].back() != host) members[part].push_back(host);
  };
  for (uint32_t host = 0; host < hosts; ++host) {
    add(parts[host], host);
    for (const Topology::Neighbour& next : topology.neighbours(host)) add(parts[next.node], host);
  }
  for (const auto& part : members) {
    if (part.size() == hosts) return absl::OkStatus();
  }
  std::vector<uint32_t> reached(hosts, UINT32_MAX);  // by host: the last host that reached it
  for (uint32_t host = 0; host < hosts; ++host) {
    reached[host] = host;
    if (parts[host] != UINT32_MAX) {
      for (const uint32_t member : members[parts[host]]) reached[member] = host;
    }
    for (const Topology::Neighbour& next : topology.neighbours(host)) {
      if (topology.is_host(next.node)) reached[next.node] = host;
      if (parts[next.node] == UINT32_MAX) continue;
      for (const uint32_t member : members[parts[next.node]]) reached[member] = host;
    }
    for (uint32_t other = 0; other < hosts; ++other) {
      if (reached[other] != host) return no_path(topology, host, other);
    }
  }
  return absl::OkStatus();
}

absl::Status check_at_most(absl::string_view what, size_t count, uint64_t most) {
  if (count <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the topology has ", count, " ", what, "; at most ", most, " are supported"));
}

absl::Status check_distances(const Topology& topology) {
  std::vector<bool> has_hosts(topology.node_count(), false);
  uint64_t several_links = 0, with_hosts = 0;
  for (uint32_t host = 0; host < topology.host_count(); ++host) {
    if (const auto only = topology.only_switch(host)) {
      with_hosts += !has_hosts[only->node];
      has_hosts[only->node] = true;
    } else {
      ++several_links;
    }
  }
  const uint64_t from = with_hosts + several_links, to = several_links + topology.switches().size();
  if (from * to <= kMaxDistances) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the topology has ", from, " switches with hosts (or hosts with several links) among ", to,
                   " switches (and such hosts); the product of both numbers is at most ", kMaxDistances));
}

}  // namespace

absl::StatusOr<Topology> Topology::make(std::vector<Host> hosts, std::vector<Switch> switches,
                                        std::vector<Link> links) {
  if (hosts.empty()) return absl::InvalidArgumentError("the topology has no host");
  GLN_RETURN_IF_ERROR(check_at_most("hosts", hosts.size(), kMaxHosts));
  GLN_RETURN_IF_ERROR(check_at_most("switches", switches.size(), kMaxSwitches));
  GLN_RETURN_IF_ERROR(check_at_most("links", links.size(), kMaxLinks));
  GLN_RETURN_IF_ERROR(check_names(hosts, switches));
  for (const Host& host : hosts) GLN_RETURN_IF_ERROR(check_host(host));
  Topology topology;
  topology.hosts_ = std::move(hosts);
  topology.switches_ = std::move(switches);
  topology.links_ = std::move(links);
  for (size_t i = 0; i < topology.links_.size(); ++i) {
    GLN_RETURN_IF_ERROR(check_link(topology.links_[i], i, topology.node_count()));
  }
  topology.index_neighbours();
  GLN_RETURN_IF_ERROR(check_distances(topology));
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

std::optional<Topology::Neighbour> Topology::only_switch(uint32_t host) const {
  const std::span<const Neighbour> all = neighbours(host);
  if (all.size() != 1 || is_host(all[0].node)) return std::nullopt;
  return all[0];
}

}  // namespace gleaner::topology
