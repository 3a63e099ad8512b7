// gleaner-agent runs on each node and publishes the machine's devices and spare resources to the cluster.
#include <iostream>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/discover/use.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/own_network.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/flags/groups.h"
#include "common/http/server.h"
#include "common/kube/credentials.h"
#include "common/kube/process.h"
#include "common/metrics/server.h"

namespace gleaner::agent {
namespace {

// The values on the command line. to_options() parses them.
struct Flags {
  std::string node, root = "/", cgroup_root, bandwidth, nvml = "libnvidia-ml.so.1", measure_listen, measure_peers,
                    measure_secret_file, metrics, health, log_level = "info";
  flags::KubeFlags kube;
  double margin = 0.1;
  uint32_t summers_per_node = 4;
  bool once = false, print = false;
};

void add_flags(flags::Command& app, Flags& flags) {
  app.add_text("--node", flags.node, "Name of this machine's Node object; with --print the host's name if not given")
      .optional_name()
      .environment("NODE_NAME");
  app.add_text("--root", flags.root, "Folder that contains the machine's /proc and /sys")
      .show_default()
      .environment("GLEANER_ROOT");
  app.add_text("--cgroup-root", flags.cgroup_root,
               "The kubelet's --cgroup-root, whose use counts as the machine's; default: from this pod's own cgroup");
  app.add_text("--bandwidth", flags.bandwidth,
               "This machine's bandwidth each way, for example 25Gbit, if it can't be read")
      .environment("GLEANER_BANDWIDTH");
  app.add_number("--summers-per-node", flags.summers_per_node, "The largest number of summers on the machine")
      .show_default()
      .between(0, 1000)
      .environment("GLEANER_SUMMERS_PER_NODE");
  app.add_number("--margin", flags.margin, "Share of CPUs, memory and bandwidth that never counts as spare")
      .show_default()
      .between(0.0, 0.9)
      .environment("GLEANER_MARGIN");
  app.add_text("--nvml", flags.nvml, "NVIDIA's management library; empty: find GPUs by their PCI class only")
      .show_default();
  app.add_text("--measure-listen", flags.measure_listen,
               "Serve measurements on HOST:PORT (TCP and UDP) to agents that know the secret")
      .optional_address();
  app.add_text("--measure-peers", flags.measure_peers,
               "HOST:PORT of a headless Service for all agents: measure latencies to them, and an unknown speed")
      .optional_address();
  app.add_text("--measure-secret-file", flags.measure_secret_file, "File with the secret that all agents share");
  flags::add_kubeconfig(app, flags.kube);
  flags::add_metrics(app, flags.metrics);
  flags::add_health(app, flags.health);
  app.add_switch("--once", flags.once, "Read the machine once, without a cluster, and end; with --print");
  app.add_switch("--print", flags.print, "Write the profile as JSON to standard output; with --once");
  flags::add_log_level(app, flags.log_level);
}

absl::StatusOr<AgentOptions> to_options(const Flags& flags) {
  if (flags.once != flags.print) return absl::InvalidArgumentError("--once and --print go together");
  AgentOptions options;
  options.node = flags.node.empty() && flags.once ? host_name() : flags.node;
  if (options.node.empty())
    return absl::InvalidArgumentError("--node or NODE_NAME must name this machine's Node object");
  options.version = GLEANER_VERSION;
  options.source.tree = discover::Tree(flags.root);
  options.source.nvml_library = flags.nvml;
  options.cgroup_root = flags.cgroup_root.empty()
                            ? discover::cgroup_root_of(discover::Tree("/").read("proc/self/cgroup").value_or(""))
                            : flags.cgroup_root;
  if (!flags.bandwidth.empty()) {
    GLN_ASSIGN_OR_RETURN(options.bits_per_second, parse_bits_per_second(flags.bandwidth));
  }
  const bool measures = !flags.measure_listen.empty();
  if (measures == flags.measure_peers.empty() || measures == flags.measure_secret_file.empty()) {
    return absl::InvalidArgumentError("--measure-listen, --measure-peers and --measure-secret-file go together");
  }
  if (measures) {
    probe::PeerProbe::Options& measure = options.measure.emplace();
    GLN_ASSIGN_OR_RETURN(measure.listen, Address::parse(flags.measure_listen));
    GLN_ASSIGN_OR_RETURN(measure.peers, Address::parse(flags.measure_peers));
    GLN_ASSIGN_OR_RETURN(measure.secret, read_secret_file(flags.measure_secret_file));
  }
  options.margin = flags.margin;
  options.summers_per_node = flags.summers_per_node;
  return options;
}

absl::Status print_once(const Env& env, const AgentOptions& options) {
  GLN_ASSIGN_OR_RETURN(const api::NodeProfile profile, profile_once(env, options, absl::Seconds(1)));
  std::cout << api::to_json(profile).dump(2) << "\n";
  return absl::OkStatus();
}

// Runs until a signal arrives.
absl::Status serve(const Env& env, const Flags& flags, const AgentOptions& options) {
  GLN_ASSIGN_OR_RETURN(const EndSignals signals, EndSignals::start("gleaner-agent"));

  kube::Client::Options client_options;
  GLN_ASSIGN_OR_RETURN(client_options.credentials, kube::find_credentials(flags.kube.kubeconfig, flags.kube.context));
  client_options.user_agent = "gleaner-agent/" GLEANER_VERSION;
  GLN_ASSIGN_OR_RETURN(const std::unique_ptr<kube::Client> client, kube::Client::create(env, client_options));
  const auto registry = std::make_shared<prometheus::Registry>();
  GLN_ASSIGN_OR_RETURN(const std::unique_ptr<Agent> agent, Agent::start(env, *client, options, *registry));
  GLN_ASSIGN_OR_RETURN(const auto metrics, metrics::serve_if_given(flags.metrics, registry));
  std::unique_ptr<http::Server> health;
  if (!flags.health.empty()) {
    GLN_ASSIGN_OR_RETURN(const Address address, Address::parse(flags.health));
    GLN_ASSIGN_OR_RETURN(health, http::Server::start({.listen = address},
                                                     http::health_routes([&agent] { return agent->why_not_ready(); })));
  }
  env.log->info("sampling this machine", "node", options.node, "metrics",
                metrics == nullptr ? "none" : metrics->address().to_string(), "health",
                health == nullptr ? "none" : health->address().to_string());
  env.log->info("ending on a signal", "signal", signals.wait());
  return absl::OkStatus();
}

}  // namespace
}  // namespace gleaner::agent

int main(int argc, char** argv) {
  using namespace gleaner;
  kube::prepare_process();
  gleaner::flags::Program app("gleaner-agent", "Publishes this machine's devices and spare resources to the cluster",
                              GLEANER_VERSION);
  agent::Flags flags;
  agent::add_flags(app, flags);
  if (const std::optional<int> status = app.parse(argc, argv)) return *status;
  const auto level = parse_log_level(flags.log_level);
  const auto options = agent::to_options(flags);
  const absl::Status usage = options.ok() ? level.status() : options.status();
  if (!usage.ok()) return app.report(usage, 2);
  const SystemEnv system({"agent", *level});
  return app.report(
      flags.once ? agent::print_once(system.env(), *options) : agent::serve(system.env(), flags, *options), 1);
}
