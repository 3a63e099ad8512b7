// FabricCache has the fabric of the cluster's nodes, and makes it again after the labels of a node or the uplinks that
// the Topology states have changed. Thread safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/fabric/fabric.h"
#include "common/placement/fleet.h"
#include "common/placement/node_labels.h"

namespace gleaner::operation {

class FabricCache {
 public:
  // `levels`: of labels, widest first.
  explicit FabricCache(placement::LabelLevels levels) : levels_(std::move(levels)) {}

  // Each returns whether the fabric may have changed.
  bool set_node(const placement::Node& node) ABSL_LOCKS_EXCLUDED(mutex_);
  bool remove_node(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  bool set_uplinks(std::vector<api::StatedUplink> uplinks) ABSL_LOCKS_EXCLUDED(mutex_);

  std::shared_ptr<const fabric::Fabric> get() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const placement::LabelLevels levels_;
  absl::Mutex mutex_;
  std::map<std::string, placement::LabelPath> nodes_ ABSL_GUARDED_BY(mutex_);
  std::vector<api::StatedUplink> uplinks_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const fabric::Fabric> fabric_ ABSL_GUARDED_BY(mutex_);  // null: to be made
};

}  // namespace gleaner::operation
