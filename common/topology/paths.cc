#include "common/topology/paths.h"

#include <limits>

namespace gleaner::topology {
namespace {

constexpr uint16_t kFar = std::numeric_limits<uint16_t>::max();

// Mixes the bits of a number (splitmix64's finalizer), so that flows with near numbers take independent paths.
uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

Paths::Paths(const Topology& topology)
    : topology_(topology),
      nodes_(topology.node_count()),
      hops_(size_t{topology.host_count()} * topology.node_count(), kFar) {
  std::vector<uint32_t> queue(nodes_);
  for (uint32_t host = 0; host < topology.host_count(); ++host) measure(host, queue);
}

// Links lead both ways, so a search from the host gives the distances to it.
void Paths::measure(uint32_t host, std::vector<uint32_t>& queue) {
  uint16_t* hops = &hops_[size_t{host} * nodes_];
  const bool hosts_forward = topology_.switches().empty();
  size_t begin = 0, end = 0;
  queue[end++] = host;
  hops[host] = 0;
  while (begin < end) {
    const uint32_t node = queue[begin++];
    if (node != host && topology_.is_host(node) && !hosts_forward) continue;
    for (const Topology::Neighbour& next : topology_.neighbours(node)) {
      if (hops[next.node] != kFar) continue;
      hops[next.node] = static_cast<uint16_t>(hops[node] + 1);
      queue[end++] = next.node;
    }
  }
}

bool Paths::leads(uint32_t host, uint32_t node, uint32_t next) const {
  return hops_to(host, next) + 1 == hops_to(host, node) &&
         (next == host || !topology_.is_host(next) || topology_.switches().empty());
}

uint64_t Paths::count(uint32_t from, uint32_t to) const {
  // Counts the paths from `from` to each node of one distance to `to`, one distance after the other.
  std::vector<uint64_t> ways(nodes_, 0);
  std::vector<uint32_t> layer = {from}, next_layer;
  ways[from] = 1;
  for (uint32_t left = hops(from, to); left > 0; --left) {
    next_layer.clear();
    for (const uint32_t node : layer) {
      for (const Topology::Neighbour& next : topology_.neighbours(node)) {
        if (!leads(to, node, next.node)) continue;
        if (ways[next.node] == 0) next_layer.push_back(next.node);
        if (__builtin_add_overflow(ways[next.node], ways[node], &ways[next.node])) ways[next.node] = UINT64_MAX;
      }
    }
    layer.swap(next_layer);
  }
  return ways[to];
}

void Paths::append_path(uint32_t from, uint32_t to, uint64_t flow, std::vector<uint32_t>& channels) const {
  for (uint32_t node = from; node != to;) {
    uint32_t choices = 0;
    for (const Topology::Neighbour& next : topology_.neighbours(node)) choices += leads(to, node, next.node);
    uint64_t chosen = choices == 1 ? 0 : mix(mix(flow + 1) ^ (uint64_t{node} << 32)) % choices;
    for (const Topology::Neighbour& next : topology_.neighbours(node)) {
      if (!leads(to, node, next.node) || chosen-- != 0) continue;
      channels.push_back(next.channel);
      node = next.node;
      break;
    }
  }
}

}  // namespace gleaner::topology
