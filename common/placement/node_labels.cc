#include "common/placement/node_labels.h"

#include <cmath>
#include <cstddef>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/api/meta.h"
#include "common/base/status_macros.h"

namespace gleaner::placement {

namespace {

using Labels = absl::flat_hash_map<std::string, std::string>;

// Returns the machine's value of the level; empty if its node has none of the level's labels.
absl::string_view value_of(const Labels& labels, const LabelLevel& level) {
  for (const std::string& key : level) {
    const auto label = labels.find(key);
    if (label != labels.end() && !label->second.empty()) return label->second;
  }
  return "";
}

}  // namespace

LabelLevels default_label_levels() {
  // NVIDIA Topograph has named its labels in three ways:
  // - since 1.0: tiers of the fabric from 0, the switch that is closest to the node, without a largest number, and
  //   domains of accelerators. https://docs.nvidia.com/topograph/v1.0.0/reference/node-labels-and-annotations
  // - before: leaf, spine, core and accelerator.
  // https://docs.nvidia.com/topograph/reference/node-labels-and-annotations
  // - first: block, spine, datacenter and accelerator. https://github.com/NVIDIA/topograph/pull/208/files
  // Tiers 0, 1 and 2 are leaf, spine and core: https://github.com/NVIDIA/NVSentinel/pull/1744
  return {
      {"topology.kubernetes.io/region"},
      {"topology.kubernetes.io/zone"},
      {"topology.k8s.aws/network-node-layer-1"},  // the widest of its three levels
      {"topology.k8s.aws/network-node-layer-2"},
      {"topology.k8s.aws/network-node-layer-3"},
      {"cloud.google.com/gce-topology-block"},
      {"cloud.google.com/gce-topology-subblock"},
      {"fabric.topograph.run/tier-5"},
      {"fabric.topograph.run/tier-4"},
      {"fabric.topograph.run/tier-3"},
      {"fabric.topograph.run/tier-2", "network.topology.nvidia.com/core", "network.topology.nvidia.com/datacenter"},
      {"fabric.topograph.run/tier-1", "network.topology.nvidia.com/spine"},
      {"fabric.topograph.run/tier-0", "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/block"},
      {"topology.kubernetes.io/rack"},
      {"accelerator.topograph.run/domain", "network.topology.nvidia.com/accelerator"},
      {"accelerator.topograph.run/sub-domain"},
  };
}

absl::StatusOr<LabelLevels> parse_label_levels(absl::string_view text) {
  LabelLevels levels;
  absl::flat_hash_set<std::string> known;
  for (const absl::string_view level : absl::StrSplit(text, ',')) {
    levels.push_back(absl::StrSplit(level, '|'));
    for (const std::string& key : levels.back()) {
      GLN_RETURN_IF_ERROR(api::check_label_key(key));
      if (key == kProbedLevel) {
        return absl::InvalidArgumentError(absl::StrCat("expected labels; ", key, " names the groups by latencies"));
      }
      if (!known.insert(key).second) {
        return absl::InvalidArgumentError(absl::StrCat("the label ", key, " occurs twice: expected each label once"));
      }
    }
  }
  return levels;
}

absl::StatusOr<LabelLevels> label_levels_of_flag(absl::string_view text) {
  if (text.empty()) return default_label_levels();
  absl::StatusOr<LabelLevels> levels = parse_label_levels(text);
  if (!levels.ok()) return absl::InvalidArgumentError(absl::StrCat("--topology: ", levels.status().message()));
  return levels;
}

LabelPath label_path(const Labels& labels, const LabelLevels& levels) {
  LabelPath path;
  path.reserve(levels.size());
  for (const LabelLevel& level : levels) path.emplace_back(value_of(labels, level));
  return path;
}

double nearness(const LabelPath& one, const LabelPath& other) {
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
                             LabelLevels levels)
    : levels_(std::move(levels)), placed_(placed_labels.size()) {
  absl::flat_hash_map<LabelPath, uint32_t> counts;
  for (const auto* labels : placed_labels) ++counts[label_path(*labels, levels_)];
  paths_.assign(counts.begin(), counts.end());
}

uint32_t Neighbourhood::score(const absl::flat_hash_map<std::string, std::string>& labels) {
  if (placed_ == 0) return 0;
  key_.clear();
  for (const LabelLevel& level : levels_) {
    const absl::string_view value = value_of(labels, level);
    key_.append(value.data(), value.size());
    key_ += '\0';  // a separator that no label contains
  }
  const auto [entry, added] = scores_.try_emplace(key_, 0);
  if (added) {
    const LabelPath candidate = label_path(labels, levels_);
    double sum = 0;
    for (const auto& [path, count] : paths_) sum += count * nearness(candidate, path);
    entry->second = static_cast<uint32_t>(std::lround(100 * sum / static_cast<double>(placed_)));
  }
  return entry->second;
}

}  // namespace gleaner::placement
