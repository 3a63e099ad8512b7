#include "common/netsim/router.h"

#include <limits>

#include "common/netsim/hash.h"

namespace gleaner::netsim {
namespace {

constexpr uint16_t kFar = std::numeric_limits<uint16_t>::max();

}  // namespace

void Router::fail(uint32_t link) {
  failed_[link] = true;
  any_failed_ = true;
  hops_.clear();
}

bool Router::find(uint32_t from, uint32_t to, uint64_t hash, std::vector<uint32_t>& channels) {
  channels.clear();
  if (!any_failed_) {
    network_.paths.append_path(from, to, hash, channels);
    return true;
  }
  const std::vector<uint16_t>& hops = hops_to(to);
  if (hops[from] == kFar) return false;
  std::vector<topology::Topology::Neighbour> choices;
  for (uint32_t node = from; node != to; node = choices.front().node) {
    choices.clear();
    for (const topology::Topology::Neighbour& next : network_.topology.neighbours(node)) {
      const bool leads = hops[next.node] + 1 == hops[node] && (next.node == to || forwards(next.node));
      if (leads && !has_failed(next.channel)) choices.push_back(next);
    }
    if (choices.size() > 1) choices.front() = choices[mix(hash, node) % choices.size()];
    channels.push_back(choices.front().channel);
  }
  return true;
}

const std::vector<uint16_t>& Router::hops_to(uint32_t host) {
  const auto [found, is_new] = hops_.try_emplace(host);
  std::vector<uint16_t>& hops = found->second;
  if (!is_new) return hops;
  hops.assign(network_.topology.node_count(), kFar);
  hops[host] = 0;
  std::vector<uint32_t> queue = {host};
  for (size_t next = 0; next < queue.size(); ++next) {
    const uint32_t node = queue[next];
    if (node != host && !forwards(node)) continue;
    for (const topology::Topology::Neighbour& neighbour : network_.topology.neighbours(node)) {
      if (has_failed(neighbour.channel) || hops[neighbour.node] != kFar) continue;
      hops[neighbour.node] = static_cast<uint16_t>(hops[node] + 1);
      queue.push_back(neighbour.node);
    }
  }
  return hops;
}

}  // namespace gleaner::netsim
