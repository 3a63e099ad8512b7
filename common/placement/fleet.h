// Fleet holds all machines as placement sees them. It assembles them from nodes, profiles and pods as these come and
// go.
//
// Not thread safe: its user (scheduler extender, operator or command line) holds a lock. Machines that a Fleet returns
// never change; when a node, its profile or its summers change, the Fleet makes a new Machine.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/api/node_profile.h"
#include "common/placement/placement.h"

namespace gleaner::placement {

// The fields of a corev1 Node that placement uses.
struct Node {
  std::string name;
  absl::flat_hash_map<std::string, std::string> labels;
  bool ready = false;     // condition Ready is True
  bool cordoned = false;  // spec.unschedulable
  bool tainted = false;   // has a taint NoSchedule or NoExecute
};
absl::StatusOr<Node> parse_node(const nlohmann::json& object);

// The fields of a corev1 Pod that placement uses.
struct Pod {
  std::string key;  // "namespace/name"
  std::string uid;
  std::string job;   // "namespace/name", from its label; empty: not a pod of Gleaner
  std::string role;  // worker | summer | empty
  std::string node;  // empty: not bound
  bool finished = false;
  double cpus = 0;                                                // requests of all containers, at least kLeastCpus
  uint64_t memory_bytes = 0;                                      // requests of all containers
  double bits_per_second = 0;                                     // the lower of its bandwidth annotations; 0: no limit
  bool holds_node() const { return !node.empty() && !finished; }  // the pod uses resources of its node
};
absl::StatusOr<Pod> parse_pod(const nlohmann::json& object);

class Fleet {
 public:
  // kIgnore is for the scheduler extender: kube-scheduler checks taints before it asks about a node.
  enum class Taints { kRefuse, kIgnore };
  explicit Fleet(Taints taints) : taints_(taints) {}

  void set_node(std::shared_ptr<const Node> node);
  void remove_node(absl::string_view name);
  void set_profile(std::shared_ptr<const api::NodeProfile> profile);
  void remove_profile(absl::string_view name);
  void set_pod(std::shared_ptr<const Pod> pod);
  void remove_pod(absl::string_view key);

  size_t profiles() const { return profiles_; }
  std::shared_ptr<const Machine> machine(absl::string_view node) const;  // null: no such node
  std::vector<std::shared_ptr<const Machine>> machines() const;

  // Return the nodes of a job's workers or summers, one entry per pod.
  std::vector<std::string> worker_nodes(absl::string_view job) const;
  std::vector<std::string> summer_nodes(absl::string_view job) const;

 private:
  using Pods = absl::flat_hash_map<std::string, std::shared_ptr<const Pod>>;
  struct Entry {
    std::shared_ptr<const Node> node;
    std::shared_ptr<const api::NodeProfile> profile;
    Pods summers;  // bound to this node, by key
    std::shared_ptr<const Machine> machine;
  };
  void rebuild(const std::string& name);
  std::vector<std::string> nodes_of(absl::string_view job, absl::string_view role) const;

  const Taints taints_;
  size_t profiles_ = 0;
  absl::flat_hash_map<std::string, Entry> entries_;  // by node name
  Pods pods_;                                        // pods that hold a node, by key
  absl::flat_hash_map<std::string, Pods> jobs_;      // the same pods, by job
};

}  // namespace gleaner::placement
