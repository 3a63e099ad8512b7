#include "common/placement/topology.h"

#include <cmath>
#include <cstddef>

namespace gleaner::placement {

std::vector<std::string> default_topology() {
  return {
      "topology.kubernetes.io/region",          "topology.kubernetes.io/zone",
      "topology.k8s.aws/network-node-layer-1",  // the widest of its three levels
      "topology.k8s.aws/network-node-layer-2",  "topology.k8s.aws/network-node-layer-3",
      "cloud.google.com/gce-topology-block",    "cloud.google.com/gce-topology-subblock",
      "network.topology.nvidia.com/datacenter", "network.topology.nvidia.com/spine",
      "network.topology.nvidia.com/block",      "topology.kubernetes.io/rack",
  };
}

TopologyPath topology_path(const absl::flat_hash_map<std::string, std::string>& labels,
                           const std::vector<std::string>& topology) {
  TopologyPath path(topology.size());
  for (size_t level = 0; level < topology.size(); ++level) {
    const auto label = labels.find(topology[level]);
    if (label != labels.end()) path[level] = label->second;
  }
  return path;
}

double nearness(const TopologyPath& one, const TopologyPath& other) {
  uint32_t levels = 0, shared = 0;
  bool together = true;
  for (size_t level = 0; level < one.size(); ++level) {
    if (one[level].empty() && other[level].empty()) continue;
    ++levels;
    together = together && one[level] == other[level];
    if (together) ++shared;
  }
  return levels == 0 ? 0 : static_cast<double>(shared) / levels;
}

Neighbourhood::Neighbourhood(const std::vector<const absl::flat_hash_map<std::string, std::string>*>& placed_labels,
                             std::vector<std::string> topology)
    : topology_(std::move(topology)), placed_(placed_labels.size()) {
  absl::flat_hash_map<TopologyPath, uint32_t> counts;
  for (const auto* labels : placed_labels) ++counts[topology_path(*labels, topology_)];
  paths_.assign(counts.begin(), counts.end());
}

uint32_t Neighbourhood::score(const absl::flat_hash_map<std::string, std::string>& labels) {
  if (placed_ == 0) return 0;
  key_.clear();
  for (const std::string& level : topology_) {
    const auto label = labels.find(level);
    if (label != labels.end()) key_ += label->second;
    key_ += '\0';  // a separator that no label contains
  }
  const auto [entry, added] = scores_.try_emplace(key_, 0);
  if (added) {
    const TopologyPath candidate = topology_path(labels, topology_);
    double sum = 0;
    for (const auto& [path, count] : paths_) sum += count * nearness(candidate, path);
    entry->second = static_cast<uint32_t>(std::lround(100 * sum / static_cast<double>(placed_)));
  }
  return entry->second;
}

}  // namespace gleaner::placement
