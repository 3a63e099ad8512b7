#include "common/topology/tiers.h"

#include <algorithm>

namespace gleaner::topology {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

}  // namespace

std::vector<uint32_t> tiers(const Topology& topology) {
  std::vector<uint32_t> result(topology.node_count(), kNone), queue;
  for (uint32_t host = 0; host < topology.host_count(); ++host) {
    result[host] = 0;
    queue.push_back(host);
  }
  for (size_t begin = 0; begin < queue.size(); ++begin) {
    for (const Topology::Neighbour& next : topology.neighbours(queue[begin])) {
      if (result[next.node] != kNone) continue;
      result[next.node] = result[queue[begin]] + 1;
      queue.push_back(next.node);
    }
  }
  const uint32_t above = result[queue.back()] + 1;
  std::replace(result.begin(), result.end(), kNone, above);
  return result;
}

std::vector<uint32_t> sides(const Topology& topology) {
  const std::vector<uint32_t> tier = tiers(topology);
  if (*std::max_element(tier.begin(), tier.end()) != 1) return {};
  std::vector<uint32_t> result(topology.node_count(), kNone), queue = {topology.host_count()};
  result[queue[0]] = 0;
  for (size_t begin = 0; begin < queue.size(); ++begin) {
    for (const Topology::Neighbour& next : topology.neighbours(queue[begin])) {
      const bool host = topology.is_host(next.node);
      const uint32_t expected = host ? result[queue[begin]] : 1 - result[queue[begin]];
      if (result[next.node] == kNone) {
        result[next.node] = expected;
        if (!host) queue.push_back(next.node);
      } else if (result[next.node] != expected) {
        return {};  // an odd cycle of switches, or a host at both sides
      }
    }
  }
  const bool all = std::find(result.begin(), result.end(), kNone) == result.end();
  return all && queue.size() > 1 ? result : std::vector<uint32_t>();
}

}  // namespace gleaner::topology
