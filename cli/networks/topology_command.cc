// gleaner topology: shows a topology, or writes it as a file that other commands read; shows the inside of a machine.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/flag_error.h"
#include "cli/networks/commands.h"
#include "cli/networks/machine_output.h"
#include "cli/networks/probed_tree.h"
#include "cli/print.h"
#include "cli/topology_flags.h"
#include "common/base/status_macros.h"
#include "common/topology/drawing.h"
#include "common/topology/json.h"
#include "common/topology/probes.h"
#include "common/topology/summary.h"

namespace gleaner::cli {
namespace {

struct TopologyCommandFlags {
  TopologyFlags topology = {.name = "TOPOLOGY"};
  std::string output = "table";
  bool groups = false;
  bool machine = false;  // TOPOLOGY is the file of a machine
};

absl::Status run_machine(const TopologyCommandFlags& flags) {
  const TopologyFlags& network = flags.topology;
  const bool has_speed =
      !(network.bandwidth.empty() && network.uplink.empty() && network.latency.empty() && network.overhead.empty());
  if (flags.groups || has_speed) {
    return flag_error("--machine",
                      "it shows one machine; leave --groups, --bandwidth, --uplink, --latency and --overhead out");
  }
  if (flags.output != "table" && flags.output != "json") {
    return flag_error("--output", absl::StrCat("a machine is shown as table or json, not as ", flags.output));
  }
  GLN_ASSIGN_OR_RETURN(const std::string text, machine_output(flags.topology.text, flags.output == "json"));
  return print(text);
}

absl::Status run_topology(const TopologyCommandFlags& flags) {
  if (flags.machine) return run_machine(flags);
  GLN_ASSIGN_OR_RETURN(topology::Topology made, topology_of(flags.topology));
  if (flags.groups) {
    if (!topology::is_of_probes(made)) {
      return absl::InvalidArgumentError("--groups: TOPOLOGY has no probes of several hosts; its links are known");
    }
    GLN_ASSIGN_OR_RETURN(made, probed_tree(made, made.host_count(), "topology"));
  }
  if (flags.output == "json") return print(topology::to_json(made));
  if (flags.output == "dot") return print(topology::to_dot(made));
  if (flags.output == "svg") {
    const auto drawing = topology::to_svg(made);
    if (drawing.ok()) return print(*drawing);
    return absl::InvalidArgumentError(absl::StrCat("--output svg: ", drawing.status().message()));
  }
  const topology::Network network = topology::make_network(std::move(made));
  return print(topology::to_table(network.topology, topology::summarize(network)));
}

}  // namespace

void add_topology(flags::Command& app, Context& context) {
  auto flags = std::make_shared<TopologyCommandFlags>();
  flags::Command command = app.add_command("topology",
                                           "Show a network of hosts and switches, or write it to a file; show how "
                                           "gradients should travel inside a machine");
  command.add_text("TOPOLOGY", flags->topology.text, help_of_topology());
  add_link_flags(command, flags->topology);
  command.add_switch("--groups", flags->groups,
                     "Show the groups of near hosts that probes suggest, as racks, in place of a link for each pair");
  command.add_switch("--machine", flags->machine,
                     "Show the GPUs, PCIe switches and NICs of one machine and the best way of gradients between them; "
                     "TOPOLOGY is the file of a machine or of a NodeProfile, or is left out for this machine");
  command
      .add_text("-o,--output", flags->output,
                "table: distances, oversubscription, kinds of links; json: the file that --topology of other "
                "commands reads; dot: for Graphviz; svg: a drawing of up to 128 hosts")
      .one_of({"table", "json", "dot", "svg"})
      .show_default();
  command.on_chosen([flags, &context] { context.run = [flags] { return run_topology(*flags); }; });
}

}  // namespace gleaner::cli
