// Makes a cluster for tests of the scheduler extender: a clock, nodes, profiles, and pods of the job team/digits.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "scheduler-ext/state/state.h"
#include "tests/paths.h"
#include "tests/unit/placement/machines.h"

namespace gleaner::extender {

// A clock that only advance() moves.
class StandingClock : public Clock {
 public:
  absl::Duration since_start() const override { return since_start_; }
  absl::Time now() const override { return placement::kNow; }
  void advance(absl::Duration by) { since_start_ += by; }

 private:
  absl::Duration since_start_ = absl::Hours(1);
};

inline std::shared_ptr<const placement::Node> ready_node(const std::string& name, const std::string& zone = "") {
  placement::Node node;
  node.name = name;
  node.ready = true;
  if (!zone.empty()) node.labels["topology.kubernetes.io/zone"] = zone;
  return std::make_shared<const placement::Node>(std::move(node));
}

// Returns the profile of a machine with 25 Gbit/s, of which `spare_gbit` are spare.
inline std::shared_ptr<const api::NodeProfile> fast_profile(const std::string& name, double spare_gbit = 20) {
  api::NodeProfile profile = placement::spare_profile(name);
  profile.status.spare.bits_per_second = spare_gbit * 1e9;
  return std::make_shared<const api::NodeProfile>(std::move(profile));
}

inline placement::Pod pod_of(const std::string& name, const std::string& role, const std::string& node = "",
                             const std::string& job = "digits") {
  placement::Pod pod;
  pod.key = "team/" + name;
  pod.job = "team/" + job;
  pod.role = role;
  pod.node = node;
  pod.cpus = 0.5;
  pod.bits_per_second = 2e9;
  return pod;
}

inline std::string recorded(const std::string& name) {
  std::ifstream file(source_dir() + "/tests/unit/scheduler_ext/recorded/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace gleaner::extender
