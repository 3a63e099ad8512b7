#include "agent/publish/node.h"

#include "common/api/meta.h"
#include "common/base/status_macros.h"
#include "common/kube/object.h"

namespace gleaner::publish {

absl::StatusOr<NodeState> parse_node(const nlohmann::json& object) {
  NodeState node;
  node.name = kube::name_of(object);
  node.uid = kube::uid_of(object);
  if (node.name.empty() || node.uid.empty()) return absl::InvalidArgumentError("the node has no name or no uid");
  node.bandwidth_label = kube::text_at(object, {"metadata", "labels", api::kNodeBandwidthLabel});
  // A new Node may have no allocatable resources yet.
  const std::string cpus = kube::text_at(object, {"status", "allocatable", "cpu"});
  const std::string memory = kube::text_at(object, {"status", "allocatable", "memory"});
  const std::string summers = kube::text_at(object, {"status", "capacity", api::kSummerResource});
  if (!cpus.empty()) {
    GLN_ASSIGN_OR_RETURN(node.allocatable_cpus, api::parse_quantity(cpus));
  }
  if (!memory.empty()) {
    GLN_ASSIGN_OR_RETURN(node.allocatable_memory_bytes, api::parse_quantity(memory));
  }
  if (!summers.empty()) {
    GLN_ASSIGN_OR_RETURN(node.summers_capacity, api::parse_quantity(summers));
  }
  return node;
}

}  // namespace gleaner::publish
