#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/cluster/access.h"
#include "cli/cluster/actions.h"
#include "cli/cluster/node_network.h"
#include "cli/cluster/topology_view.h"
#include "cli/print.h"
#include "cli/self/own_command.h"
#include "common/api/node_profile.h"
#include "common/base/status_macros.h"
#include "common/kube/object.h"
#include "common/kube/resource.h"

namespace gleaner::cli {

absl::Status run_cluster_topology(const TopologyCommandFlags& flags) {
  GLN_RETURN_IF_ERROR(check(flags));
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags.cluster));
  GLN_ASSIGN_OR_RETURN(const api::Topology topology, access->topology());
  const auto profiles = access->list_as(kube::node_profiles(), "", api::parse_node_profile);
  if (flags.output == "table") return print(topology_text(topology, profiles));
  GLN_RETURN_IF_ERROR(profiles.status());
  GLN_ASSIGN_OR_RETURN(const std::vector<kube::Object> objects, access->list(kube::nodes(), ""));
  std::vector<std::string> nodes;
  for (const kube::Object& object : objects) nodes.push_back(kube::name_of(object));
  GLN_ASSIGN_OR_RETURN(NodeNetwork made, network_of_nodes(topology, std::move(nodes), *profiles));
  std::vector<std::string> assumptions = unmet_conditions(topology);
  if (!made.assumption.empty()) assumptions.push_back(std::move(made.assumption));
  for (const std::string& each : assumptions) std::cerr << own_command("topology") << ": " << each << std::endl;
  GLN_ASSIGN_OR_RETURN(const std::string text, output_of(flags, std::move(made.network)));
  return print(text);
}

}  // namespace gleaner::cli
