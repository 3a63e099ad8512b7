// All machines as placement sees them, put together from nodes, profiles and pods as these come and go.
//
// Not thread safe: whoever keeps it (scheduler extender, operator, command line) guards it. Machines that it hands out
// never change; a change of a node, its profile or its summers makes another one.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "operator/placement/placement.h"
#include "operator/types/node_profile.h"

namespace gleaner::placement {

// What counts of a corev1 Node.
struct Node {
  std::string name;
  absl::flat_hash_map<std::string, std::string> labels;
  bool ready = false;     // its condition Ready
  bool cordoned = false;  // spec.unschedulable
  bool tainted = false;   // NoSchedule or NoExecute
};
absl::StatusOr<Node> parse_node(const nlohmann::json& object);

// What counts of a corev1 Pod.
struct Pod {
  std::string key;  // "namespace/name"
  std::string uid;
  std::string job;   // "namespace/name", by its label; empty: of no job
  std::string role;  // worker | summer | empty
  std::string node;  // empty: not bound
  bool finished = false;
  double cpus = 0;             // a summer's: requests of all containers, kLeastCpus at least
  uint64_t memory_bytes = 0;   // the same
  double bits_per_second = 0;  // the lower of its bandwidth annotations; 0: not limited
  bool holds_node() const { return !node.empty() && !finished; }
};
absl::StatusOr<Pod> parse_pod(const nlohmann::json& object);

class Fleet {
 public:
  // Who asks about machines that the scheduler has found tolerable already does not look at taints.
  enum class Taints { kRefuse, kIgnore };
  explicit Fleet(Taints taints) : taints_(taints) {}

  void set_node(std::shared_ptr<const Node> node);
  void remove_node(absl::string_view name);
  void set_profile(std::shared_ptr<const types::NodeProfile> profile);
  void remove_profile(absl::string_view name);
  void set_pod(std::shared_ptr<const Pod> pod);
  void remove_pod(absl::string_view key);

  size_t profiles() const { return profiles_; }
  std::shared_ptr<const Machine> machine(absl::string_view node) const;  // null: there is no such node
  std::vector<std::shared_ptr<const Machine>> machines() const;

  // Nodes of a job's workers and summers; a node is there once per pod.
  std::vector<std::string> worker_nodes(absl::string_view job) const;
  std::vector<std::string> summer_nodes(absl::string_view job) const;

 private:
  using Pods = absl::flat_hash_map<std::string, std::shared_ptr<const Pod>>;
  struct Entry {
    std::shared_ptr<const Node> node;
    std::shared_ptr<const types::NodeProfile> profile;
    Pods summers;  // bound here, by key
    std::shared_ptr<const Machine> machine;
  };
  void rebuild(const std::string& name);
  std::vector<std::string> nodes_of(absl::string_view job, absl::string_view role) const;

  const Taints taints_;
  size_t profiles_ = 0;
  absl::flat_hash_map<std::string, Entry> entries_;  // by node name
  Pods pods_;                                        // that hold a node, by key
  absl::flat_hash_map<std::string, Pods> jobs_;      // the same, by job
};

}  // namespace gleaner::placement
