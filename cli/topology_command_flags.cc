#include "cli/topology_command_flags.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/flag_error.h"
#include "common/topology/drawing.h"
#include "common/topology/json.h"
#include "common/topology/summary.h"

namespace gleaner::cli {
namespace {

bool has_speed(const TopologyFlags& flags) {
  return !(flags.bandwidth.empty() && flags.uplink.empty() && flags.latency.empty() && flags.overhead.empty());
}

absl::Status check_machine(const TopologyCommandFlags& flags) {
  if (flags.groups || has_speed(flags.topology)) {
    return flag_error("--machine",
                      "it shows one machine; leave --groups, --bandwidth, --uplink, --latency and --overhead out");
  }
  if (flags.output != "table" && flags.output != "json") {
    return flag_error("--output", absl::StrCat("a machine is shown as table or json, not as ", flags.output));
  }
  return absl::OkStatus();
}

}  // namespace

bool is_of_cluster(const TopologyCommandFlags& flags) { return flags.topology.text.empty() && !flags.machine; }

absl::Status check(const TopologyCommandFlags& flags) {
  if (is_of_cluster(flags)) {
    if (!flags.groups && !has_speed(flags.topology)) return absl::OkStatus();
    return flag_error(flags.topology.name,
                      "give it; --groups, --bandwidth, --uplink, --latency and --overhead are not for a cluster");
  }
  if (!flags.cluster.kube.kubeconfig.empty() || !flags.cluster.kube.context.empty()) {
    return flag_error("--kubeconfig and --context",
                      "the topology of a cluster is shown without TOPOLOGY and --machine; leave these out");
  }
  return flags.machine ? check_machine(flags) : absl::OkStatus();
}

void add_topology(flags::Command& app, Context& context,
                  std::function<absl::Status(const TopologyCommandFlags&)> action) {
  auto flags = std::make_shared<TopologyCommandFlags>();
  flags::Command command = app.add_command("topology",
                                           "Show a network of hosts and switches or that of a cluster, or write it to "
                                           "a file; show how gradients should travel inside a machine");
  command.add_text("TOPOLOGY", flags->topology.text,
                   absl::StrCat(help_of_topology(), "; left out: the network of a cluster"));
  add_link_flags(command, flags->topology);
  add_connection_flags(command, flags->cluster, Namespaces::kNone);
  command.add_switch("--groups", flags->groups,
                     "Show the groups of near hosts that probes suggest, as racks, in place of a link for each pair");
  command.add_switch("--machine", flags->machine,
                     "Show the GPUs, PCIe switches and NICs of one machine and the best way of gradients between them; "
                     "TOPOLOGY is the file of a machine or of a NodeProfile, or is left out for this machine");
  command
      .add_text("-o,--output", flags->output,
                "table: distances, oversubscription, kinds of links, or the groups of a cluster's nodes; json: the "
                "file that --topology of other commands reads; dot: for Graphviz; svg: a drawing of up to 128 hosts")
      .one_of({"table", "json", "dot", "svg"})
      .show_default();
  command.on_chosen(
      [flags, action = std::move(action), &context] { context.run = [flags, action] { return action(*flags); }; });
}

absl::StatusOr<std::string> output_of(const TopologyCommandFlags& flags, topology::Topology topology) {
  if (flags.output == "json") return topology::to_json(topology);
  if (flags.output == "dot") return topology::to_dot(topology);
  if (flags.output == "svg") {
    auto drawing = topology::to_svg(topology);
    if (drawing.ok()) return drawing;
    return flag_error("--output svg", drawing.status().message());
  }
  const topology::Network network = topology::make_network(std::move(topology));
  return topology::to_table(network.topology, topology::summarize(network));
}

}  // namespace gleaner::cli
