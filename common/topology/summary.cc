#include "common/topology/summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/topology/tiers.h"

namespace gleaner::topology {
namespace {

// Finds the farthest hosts among the first hosts of all switches and the hosts with several links, and among the first
// two hosts of each switch. No other two hosts are farther from each other.
std::optional<Farthest> farthest(const Network& network) {
  const Topology& topology = network.topology;
  Farthest result;
  const auto consider = [&](uint32_t from, uint32_t to) {
    const uint32_t hops = network.paths.hops(from, to);
    if (hops > result.hops) result = {.from = from, .to = to, .hops = hops};
  };
  std::vector<uint32_t> first(topology.node_count(), UINT32_MAX), hosts;  // `first` by switch
  for (uint32_t host = 0; host < topology.host_count(); ++host) {
    const auto only = topology.only_switch(host);
    if (only && first[only->node] != UINT32_MAX) {
      consider(first[only->node], host);
      continue;
    }
    if (only) first[only->node] = host;
    hosts.push_back(host);
  }
  for (size_t i = 0; i < hosts.size(); ++i) {
    for (size_t j = i + 1; j < hosts.size(); ++j) consider(hosts[i], hosts[j]);
  }
  if (result.hops == 0) return std::nullopt;
  result.paths = network.paths.count(result.from, result.to);
  std::vector<uint32_t> channels;
  network.paths.append_path(result.from, result.to, 0, channels);
  for (const uint32_t channel : channels) result.latency_seconds += topology.latency_seconds(channel);
  return result;
}

std::optional<Oversubscription> oversubscription(const Topology& topology) {
  std::optional<Oversubscription> worst;
  for (uint32_t node = topology.host_count(); node < topology.node_count(); ++node) {
    Oversubscription here{.node = node};
    for (const Topology::Neighbour& next : topology.neighbours(node)) {
      if (topology.is_host(next.node)) {
        here.host_bits_per_second += topology.bits_per_second(next.channel ^ 1);
      } else {
        here.uplink_bits_per_second += topology.bits_per_second(next.channel);
      }
    }
    if (here.host_bits_per_second == 0 || here.uplink_bits_per_second == 0) continue;
    if (!worst || here.ratio() > worst->ratio()) worst = here;
  }
  return worst;
}

void widen(LinkClass::Range& range, const LinkClass::Range& by) {
  range = {std::min(range.least, by.least), std::max(range.most, by.most)};
}

bool same(const LinkClass::Range& a, const LinkClass::Range& b) { return a.least == b.least && a.most == b.most; }

// Makes `all` a class with the links of both classes.
void merge(LinkClass& all, const LinkClass& one) {
  all.count += one.count;
  widen(all.up, one.up);
  widen(all.down, one.down);
  widen(all.latency_seconds, one.latency_seconds);
}

// The classes between two tiers.
struct TierLinks {
  std::vector<LinkClass> classes;
  bool is_merged = false;
};

void add(TierLinks& kind, const LinkClass& one) {
  const auto found = std::find_if(kind.classes.begin(), kind.classes.end(), [&](const LinkClass& other) {
    return kind.is_merged ||
           (same(one.up, other.up) && same(one.down, other.down) && same(one.latency_seconds, other.latency_seconds));
  });
  if (found != kind.classes.end()) return merge(*found, one);
  kind.classes.push_back(one);
  if (kind.classes.size() <= 8) return;
  for (size_t i = 1; i < kind.classes.size(); ++i) merge(kind.classes[0], kind.classes[i]);
  kind.classes.resize(1);
  kind.is_merged = true;
}

std::vector<LinkClass> classes_of(const Topology& topology) {
  const std::vector<uint32_t> tier = tiers(topology);
  std::map<std::pair<uint32_t, uint32_t>, TierLinks> kinds;  // by lower and upper tier
  for (uint32_t i = 0; i < topology.links().size(); ++i) {
    const Link& link = topology.links()[i];
    uint32_t lower = tier[link.a], upper = tier[link.b];
    double up = link.bits_per_second, down = link.back_bits_per_second;
    if (lower > upper) {
      std::swap(lower, upper);
      std::swap(up, down);
    }
    add(kinds[{lower, upper}],
        {lower, upper, 1, {up, up}, {down, down}, {link.latency_seconds, link.latency_seconds}, i});
  }
  std::vector<LinkClass> result;
  for (const auto& [tiers_of_kind, kind] : kinds) {
    result.insert(result.end(), kind.classes.begin(), kind.classes.end());
  }
  return result;
}

}  // namespace

Summary summarize(const Network& network) {
  return {farthest(network), oversubscription(network.topology), classes_of(network.topology)};
}

}  // namespace gleaner::topology
