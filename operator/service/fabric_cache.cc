#include "operator/service/fabric_cache.h"

#include <utility>

#include "common/fabric/group_latencies.h"
#include "common/fabric/group_value.h"
#include "common/fabric/measured_uplinks.h"

namespace gleaner::operation {
namespace {

double found_or_zero(const std::map<std::string, double>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? 0 : found->second;
}

}  // namespace

bool FabricCache::set_node(const placement::Node& node) {
  placement::LabelPath path = placement::label_path(node.labels, levels_);
  absl::MutexLock lock(&mutex_);
  const auto [known, added] = nodes_.try_emplace(node.name);
  if (!added && known->second == path) return false;
  known->second = std::move(path);
  labels_changed_ = true;
  fabric_ = nullptr;
  return true;
}

bool FabricCache::remove_node(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (nodes_.erase(name) == 0) return false;
  labels_changed_ = true;
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

bool FabricCache::set_profile(std::shared_ptr<const api::NodeProfile> profile) {
  absl::MutexLock lock(&mutex_);
  const auto [known, added] = profiles_.try_emplace(profile->meta.name);
  const api::NodeProfileStatus& after = profile->status;
  const bool changed = added ? !after.peers.empty() || !after.peer_bandwidths.empty()
                             : known->second->status.peers != after.peers ||
                                   known->second->status.peer_bandwidths != after.peer_bandwidths;
  known->second = std::move(profile);
  profiles_changed_ = profiles_changed_ || changed;
  return changed;
}

bool FabricCache::remove_profile(const std::string& node) {
  absl::MutexLock lock(&mutex_);
  if (profiles_.erase(node) == 0) return false;
  profiles_changed_ = true;
  return true;
}

void FabricCache::restore(const api::TopologyStatus& status) {
  absl::MutexLock lock(&mutex_);
  if (measured_ != absl::InfinitePast()) return;
  near_.group_of.clear();
  measured_uplinks_.clear();
  latencies_.clear();
  core_latency_ = status.latency_seconds;
  for (const api::TopologyGroup& group : status.groups) {
    latencies_[group.name] = group.latency_seconds;
    if (group.uplink_source == api::UplinkSource::kProbes) measured_uplinks_[group.name] = group.uplink_bits_per_second;
    if (group.level != fabric::kProbedLevel) continue;
    const std::string value(fabric::group_value(group));
    for (const std::string& node : group.nodes) near_.group_of[node] = value;
  }
  fabric_ = nullptr;
}

void FabricCache::measure(absl::Time now) {
  fabric::Profiles profiles;
  std::vector<fabric::LabelledNode> nodes;
  absl::flat_hash_map<std::string, std::string> before;
  {
    absl::MutexLock lock(&mutex_);
    // The clock may have been set back.
    const bool due = profiles_changed_ && (now < measured_ || now - measured_ >= kMeasurePeriod);
    if (!labels_changed_ && !due) return;
    labels_changed_ = profiles_changed_ = false;
    measured_ = now;
    profiles = profiles_;
    before = near_.group_of;
    for (const auto& [name, path] : nodes_) nodes.push_back({name, path, {}});
  }
  fabric::NearNodes near = fabric::find_near_nodes(nodes, profiles, before, now);
  const fabric::Fabric made = [&] {
    absl::MutexLock lock(&mutex_);
    return make(near);
  }();
  const std::vector<double> uplinks = fabric::measured_uplinks(made, profiles, now);
  const fabric::GroupLatencies latencies = fabric::group_latencies(made, profiles, near.implausible, now);
  absl::MutexLock lock(&mutex_);
  near_ = std::move(near);
  measured_uplinks_.clear();
  latencies_.clear();
  for (size_t i = 0; i < made.groups().size(); ++i) {
    const api::TopologyGroup& group = made.groups()[i];
    measured_uplinks_[group.name] = uplinks[i];
    latencies_[group.name] = fabric::settled_latency(group.latency_seconds, latencies.of_groups[i]);
  }
  core_latency_ = fabric::settled_latency(made.core_latency_seconds(), latencies.core);
  fabric_ = nullptr;
}

fabric::NearNodes FabricCache::near() const {
  absl::MutexLock lock(&mutex_);
  return near_;
}

fabric::Fabric FabricCache::make(const fabric::NearNodes& near) const {
  std::vector<fabric::LabelledNode> nodes;
  nodes.reserve(nodes_.size());
  for (const auto& [name, path] : nodes_) {
    const auto group = near.group_of.find(name);
    nodes.push_back({name, path, group == near.group_of.end() ? "" : group->second});
  }
  fabric::Fabric made = fabric::Fabric::of_labels(std::move(nodes), levels_, uplinks_);
  std::vector<double> uplinks, latencies;
  for (const api::TopologyGroup& group : made.groups()) {
    uplinks.push_back(found_or_zero(measured_uplinks_, group.name));
    latencies.push_back(found_or_zero(latencies_, group.name));
  }
  made.set_measured_uplinks(uplinks);
  made.set_latencies(latencies, core_latency_);
  return made;
}

std::shared_ptr<const fabric::Fabric> FabricCache::get() {
  absl::MutexLock lock(&mutex_);
  if (fabric_ == nullptr) fabric_ = std::make_shared<const fabric::Fabric>(make(near_));
  return fabric_;
}

}  // namespace gleaner::operation
