// FabricCache has the fabric of the cluster's nodes, and makes it again after the labels of a node, the uplinks that
// the Topology states, or what agents measure have changed. Thread safe.
//
// Groups by latencies take up to some seconds to find, so they change only when the TopologyWriter calls measure().
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/api/node_profile.h"
#include "common/fabric/fabric.h"
#include "common/fabric/latency_pairs.h"
#include "common/fabric/near_nodes.h"
#include "common/placement/fleet.h"
#include "common/placement/node_labels.h"

namespace gleaner::operation {

inline constexpr absl::Duration kMeasurePeriod = absl::Minutes(1);

class FabricCache {
 public:
  // `levels`: of labels, widest first.
  explicit FabricCache(placement::LabelLevels levels) : levels_(std::move(levels)) {}

  // Each returns whether the fabric may have changed.
  bool set_node(const placement::Node& node) ABSL_LOCKS_EXCLUDED(mutex_);
  bool remove_node(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  bool set_uplinks(std::vector<api::StatedUplink> uplinks) ABSL_LOCKS_EXCLUDED(mutex_);

  // Store what the node's agent says. Each returns whether measure() is to be called kMeasurePeriod later. A call may
  // come too early to measure, so each further change asks for one again.
  bool set_profile(std::shared_ptr<const api::NodeProfile> profile) ABSL_LOCKS_EXCLUDED(mutex_);
  bool remove_profile(const std::string& node) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the groups, uplinks and latencies that another operator has found by measurements, unless measure() has found
  // some.
  void restore(const api::TopologyStatus& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Finds groups, uplinks and latencies by the measurements of agents, if labels have changed, or if measurements have
  // and the last time was kMeasurePeriod ago. Called by one thread at a time.
  void measure(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  fabric::NearNodes near() const ABSL_LOCKS_EXCLUDED(mutex_);  // what the last measure() has found

  std::shared_ptr<const fabric::Fabric> get() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  fabric::Fabric make(const fabric::NearNodes& near) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const placement::LabelLevels levels_;
  mutable absl::Mutex mutex_;
  std::map<std::string, placement::LabelPath> nodes_ ABSL_GUARDED_BY(mutex_);
  std::vector<api::StatedUplink> uplinks_ ABSL_GUARDED_BY(mutex_);
  fabric::Profiles profiles_ ABSL_GUARDED_BY(mutex_);
  fabric::NearNodes near_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, double> measured_uplinks_ ABSL_GUARDED_BY(mutex_);  // in bit/s, by the group's name
  std::map<std::string, double> latencies_ ABSL_GUARDED_BY(mutex_);         // in seconds, by the group's name
  double core_latency_ ABSL_GUARDED_BY(mutex_) = 0;                         // in seconds
  bool labels_changed_ ABSL_GUARDED_BY(mutex_) = false;                     // since measure()
  bool profiles_changed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time measured_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();    // when measure() began last
  std::shared_ptr<const fabric::Fabric> fabric_ ABSL_GUARDED_BY(mutex_);  // null: to be made
};

}  // namespace gleaner::operation
