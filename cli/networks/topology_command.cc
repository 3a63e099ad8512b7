#include "cli/networks/topology_command.h"

#include <string>
#include <utility>

#include "cli/networks/machine_output.h"
#include "cli/networks/probed_tree.h"
#include "cli/print.h"
#include "common/base/status_macros.h"
#include "common/topology/probes.h"

namespace gleaner::cli {

absl::Status run_topology(const TopologyCommandFlags& flags) {
  GLN_RETURN_IF_ERROR(check(flags));
  if (flags.machine) {
    GLN_ASSIGN_OR_RETURN(const std::string text, machine_output(flags.topology.text, flags.output == "json"));
    return print(text);
  }
  GLN_ASSIGN_OR_RETURN(topology::Topology made, topology_of(flags.topology));
  if (flags.groups) {
    if (!topology::is_of_probes(made)) {
      return absl::InvalidArgumentError("--groups: TOPOLOGY has no probes of several hosts; its links are known");
    }
    GLN_ASSIGN_OR_RETURN(made, probed_tree(made, made.host_count(), "topology"));
  }
  GLN_ASSIGN_OR_RETURN(const std::string text, output_of(flags, std::move(made)));
  return print(text);
}

}  // namespace gleaner::cli
