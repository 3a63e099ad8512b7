#include "common/ranks/hdrm.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::ranks {
namespace {

using topology::Topology;

absl::Status unfit(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("HDRM needs a BiGraph: ", why));
}

// The hosts of a BiGraph by their places.
struct BiGraph {
  uint32_t half = 0;            // switches on each side, N/2
  uint32_t ports = 0;           // hosts at each switch, M
  std::vector<uint32_t> hosts;  // by side, switch and port

  size_t index(uint32_t side, uint32_t at, uint32_t port) const { return (size_t{side} * half + at) * ports + port; }
};

// Returns the switch that a host's only link leads to.
std::optional<uint32_t> switch_of(const Topology& topology, uint32_t host) {
  const auto neighbours = topology.neighbours(host);
  if (neighbours.size() != 1 || topology.is_host(neighbours[0].node)) return std::nullopt;
  return neighbours[0].node;
}

// Checks that the hosts of equal side and switch share a switch, and that a link joins each two switches of different
// sides.
absl::Status check_links(const Topology& topology, const BiGraph& graph) {
  std::vector<uint32_t> nodes;  // the switches, by side
  for (uint32_t i = 0; i < graph.hosts.size(); ++i) {
    const uint32_t host = graph.hosts[i];
    const std::optional<uint32_t> node = switch_of(topology, host);
    if (!node) return unfit(absl::StrCat("host '", topology.name(host), "' has other links than one to a switch"));
    if (i % graph.ports == 0) nodes.push_back(*node);
    if (nodes.back() == *node) continue;
    return unfit(absl::StrCat("hosts '", topology.name(graph.hosts[i - 1]), "' and '", topology.name(host),
                              "' are at different switches, but their places name one switch"));
  }
  if (absl::flat_hash_set<uint32_t>(nodes.begin(), nodes.end()).size() != nodes.size()) {
    return unfit("hosts whose places name different switches are at one switch");
  }
  for (uint32_t upper = 0; upper < graph.half; ++upper) {
    absl::flat_hash_set<uint32_t> joined;
    for (const Topology::Neighbour& next : topology.neighbours(nodes[upper])) joined.insert(next.node);
    for (uint32_t lower = graph.half; lower < 2 * graph.half; ++lower) {
      if (joined.contains(nodes[lower])) continue;
      return unfit(absl::StrCat("no link joins '", topology.name(nodes[upper]), "' and '", topology.name(nodes[lower]),
                                "', which are on different sides"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BiGraph> bigraph_of(const Topology& topology) {
  BiGraph graph;
  for (const topology::Host& host : topology.hosts()) {
    if (host.place.size() != 3 || host.place[0] > 1) {
      return unfit(absl::StrCat("host '", host.name, "' has no place [side, switch, port] with side 0 or 1"));
    }
    if (host.place[1] >= topology.host_count() || host.place[2] >= topology.host_count()) {
      return unfit(absl::StrCat("host '", host.name, "' has a switch or port number above the number of hosts"));
    }
    graph.half = std::max(graph.half, host.place[1] + 1);
    graph.ports = std::max(graph.ports, host.place[2] + 1);
  }
  const uint64_t places = uint64_t{2} * graph.half * graph.ports;
  if (places != topology.host_count()) {
    return unfit(absl::StrCat("its two sides of ", graph.half, " switches with ", graph.ports, " ports have ", places,
                              " places; there are ", topology.host_count(), " hosts"));
  }
  graph.hosts.assign(places, topology.host_count());
  for (uint32_t host = 0; host < topology.host_count(); ++host) {
    const std::vector<uint32_t>& place = topology.hosts()[host].place;
    uint32_t& entry = graph.hosts[graph.index(place[0], place[1], place[2])];
    if (entry != topology.host_count()) {
      return unfit(absl::StrCat("hosts '", topology.name(entry), "' and '", topology.name(host), "' have one place"));
    }
    entry = host;
  }
  GLN_RETURN_IF_ERROR(check_links(topology, graph));
  return graph;
}

}  // namespace

absl::StatusOr<RankMap> hdrm(const Topology& topology, uint32_t ranks) {
  GLN_ASSIGN_OR_RETURN(const BiGraph graph, bigraph_of(topology));
  if (!std::has_single_bit(graph.half) || !std::has_single_bit(graph.ports) || graph.ports > graph.half) {
    return absl::InvalidArgumentError(
        absl::StrCat("HDRM needs a BiGraph MxN whose M and N are powers of two with M <= N/2; this one is ",
                     graph.ports, "x", 2 * graph.half));
  }
  if (!std::has_single_bit(ranks) || ranks < 2 || ranks > topology.host_count()) {
    return absl::InvalidArgumentError(absl::StrCat("HDRM needs a power of two of ranks, from 2 to ",
                                                   topology.host_count(), " on this BiGraph; there are ", ranks));
  }
  const uint32_t switches = 2 * graph.half;
  RankMap host_of(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint32_t group = rank / switches, in_group = rank % switches;
    const uint32_t side = std::popcount(rank) % 2;
    // A cyclic left shift by j moves the entry at position p to position p - j.
    const uint32_t pair = in_group / 2, shift = side == 0 ? group : 0;
    const uint32_t at = (pair + graph.half - shift) % graph.half;
    host_of[rank] = graph.hosts[graph.index(side, at, group)];
  }
  return host_of;
}

std::optional<RankMap> hdrm_start(const collective::Schedule& schedule, const topology::Topology& topology) {
  if (schedule.algorithm != "halving-doubling") return std::nullopt;
  absl::StatusOr<RankMap> map = hdrm(topology, schedule.ranks);
  if (!map.ok()) return std::nullopt;
  return *std::move(map);
}

}  // namespace gleaner::ranks
