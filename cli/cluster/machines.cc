#include "cli/cluster/machines.h"

#include <memory>
#include <utility>

#include "common/api/node_profile.h"
#include "common/kube/resource.h"

namespace gleaner::cli {

absl::StatusOr<ReadMachines> read_machines(ClusterAccess& access) {
  ReadMachines read;
  GLN_ASSIGN_OR_RETURN(auto profiles, access.list_as(kube::node_profiles(), "", api::parse_node_profile));
  GLN_ASSIGN_OR_RETURN(auto nodes, access.list_as(kube::nodes(), "", placement::parse_node));
  GLN_ASSIGN_OR_RETURN(read.pods, access.list_as(kube::pods(), "", placement::parse_pod, api::kJobLabel));
  for (auto& profile : profiles) {
    read.fleet.set_profile(std::make_shared<const api::NodeProfile>(std::move(profile)));
  }
  for (auto& node : nodes) read.fleet.set_node(std::make_shared<const placement::Node>(std::move(node)));
  for (const auto& pod : read.pods) read.fleet.set_pod(std::make_shared<const placement::Pod>(pod));
  return read;
}

absl::StatusOr<fabric::Fabric> read_fabric(ClusterAccess& access) {
  const absl::StatusOr<api::Topology> topology = access.topology();
  if (absl::IsFailedPrecondition(topology.status())) return fabric::Fabric();
  GLN_RETURN_IF_ERROR(topology.status());
  return fabric::Fabric::of_status(topology->status);
}

}  // namespace gleaner::cli
