#include "operator/service/fabric_cache.h"

#include <utility>

namespace gleaner::operation {

bool FabricCache::set_node(const placement::Node& node) {
  placement::LabelPath path = placement::label_path(node.labels, levels_);
  absl::MutexLock lock(&mutex_);
  const auto [known, added] = nodes_.try_emplace(node.name);
  if (!added && known->second == path) return false;
  known->second = std::move(path);
  fabric_ = nullptr;
  return true;
}

bool FabricCache::remove_node(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (nodes_.erase(name) == 0) return false;
  fabric_ = nullptr;
  return true;
}

bool FabricCache::set_uplinks(std::vector<api::StatedUplink> uplinks) {
  absl::MutexLock lock(&mutex_);
  if (uplinks_ == uplinks) return false;
  uplinks_ = std::move(uplinks);
  fabric_ = nullptr;
  return true;
}

std::shared_ptr<const fabric::Fabric> FabricCache::get() {
  absl::MutexLock lock(&mutex_);
  if (fabric_ == nullptr) {
    std::vector<fabric::LabelledNode> nodes;
    nodes.reserve(nodes_.size());
    for (const auto& [name, path] : nodes_) nodes.push_back({name, path});
    fabric_ = std::make_shared<const fabric::Fabric>(fabric::Fabric::of_labels(std::move(nodes), levels_, uplinks_));
  }
  return fabric_;
}

}  // namespace gleaner::operation
