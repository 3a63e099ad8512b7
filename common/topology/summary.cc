#include "common/topology/summary.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/topology/tiers.h"

namespace gleaner::topology {
namespace {

// Returns hosts among which are two of the farthest: the first two hosts at each switch, and all hosts with several
// links.
std::vector<uint32_t> representatives(const Topology& topology) {
  std::vector<uint32_t> at_switch(topology.node_count(), 0), result;
  for (uint32_t host = 0; host < topology.host_count(); ++host) {
    const auto only = topology.only_switch(host);
    if (!only || at_switch[only->node]++ < 2) result.push_back(host);
  }
  return result;
}

std::optional<Farthest> farthest(const Topology& topology, const Paths& paths) {
  const std::vector<uint32_t> hosts = representatives(topology);
  Farthest result;
  for (size_t i = 0; i < hosts.size(); ++i) {
    for (size_t j = i + 1; j < hosts.size(); ++j) {
      const uint32_t hops = paths.hops(hosts[i], hosts[j]);
      if (hops > result.hops) result = {.from = hosts[i], .to = hosts[j], .hops = hops};
    }
  }
  if (result.hops == 0) return std::nullopt;
  result.paths = paths.count(result.from, result.to);
  std::vector<uint32_t> channels;
  paths.append_path(result.from, result.to, 0, channels);
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

// Returns one class for all classes from `begin` to `end`.
LinkClass merged(const std::vector<LinkClass>& classes, size_t begin, size_t end) {
  LinkClass all = classes[begin];
  for (size_t i = begin + 1; i < end; ++i) {
    all.count += classes[i].count;
    all.example = std::min(all.example, classes[i].example);
    widen(all.up, classes[i].up);
    widen(all.down, classes[i].down);
    widen(all.latency_seconds, classes[i].latency_seconds);
  }
  return all;
}

std::vector<LinkClass> classes_of(const Topology& topology) {
  const std::vector<uint32_t> tier = tiers(topology);
  std::map<std::tuple<uint32_t, uint32_t, double, double, double>, LinkClass> found;
  for (uint32_t i = 0; i < topology.links().size(); ++i) {
    const Link& link = topology.links()[i];
    uint32_t lower = tier[link.a], upper = tier[link.b];
    double up = link.bits_per_second, down = link.back_bits_per_second;
    if (lower > upper) {
      std::swap(lower, upper);
      std::swap(up, down);
    }
    LinkClass& one = found[{lower, upper, up, down, link.latency_seconds}];
    if (one.count++ == 0) {
      one = {lower, upper, 1, {up, up}, {down, down}, {link.latency_seconds, link.latency_seconds}, i};
    }
  }
  std::vector<LinkClass> all, result;
  for (const auto& [key, one] : found) all.push_back(one);
  const auto order = [](const LinkClass& one) { return std::tuple(one.lower, one.upper, one.example); };
  std::sort(all.begin(), all.end(), [&](const LinkClass& a, const LinkClass& b) { return order(a) < order(b); });
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].lower == all[begin].lower && all[end].upper == all[begin].upper) ++end;
    if (end - begin > 8) {
      result.push_back(merged(all, begin, end));
    } else {
      result.insert(result.end(), all.begin() + static_cast<long>(begin), all.begin() + static_cast<long>(end));
    }
  }
  return result;
}

}  // namespace

Summary summarize(const Topology& topology, const Paths& paths) {
  return {farthest(topology, paths), oversubscription(topology), classes_of(topology)};
}

}  // namespace gleaner::topology
