// gleaner-agent: one on each node, tells the cluster what the machine has and what it can spare.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/discover/use.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/flags/flags.h"
#include "common/kube/credentials.h"
#include "common/kube/http_server.h"
#include "common/kube/process.h"
#include "common/metrics/server.h"

namespace gleaner::agent {
namespace {

// The command line as it was typed; parsed by to_options().
struct Flags {
  std::string node, root = "/", cgroup_root, bandwidth, nvml = "libnvidia-ml.so.1", kubeconfig, context, measure_listen,
                    measure_peers, measure_secret_file, metrics, health, log_level = "info";
  double margin = 0.1;
  uint32_t summers_per_node = 4;
  bool once = false, print = false;
};

void add_flags(CLI::App& app, Flags& flags) {
  app.add_option("--node", flags.node, "Name of this machine's Node object; with --print the host's name if not given")
      ->envname("NODE_NAME");
  app.add_option("--root", flags.root, "Folder under which the machine's /proc and /sys are")
      ->capture_default_str()
      ->envname("GLEANER_ROOT");
  app.add_option(
      "--cgroup-root", flags.cgroup_root,
      "The kubelet's --cgroup-root, whose use counts as the machine's; default: as this pod's own cgroup tells");
  app.add_option("--bandwidth", flags.bandwidth,
                 "This machine's bandwidth each way, for example 25Gbit, if it can't be read")
      ->envname("GLEANER_BANDWIDTH");
  app.add_option("--summers-per-node", flags.summers_per_node, "How many summers the machine takes at most")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000))
      ->envname("GLEANER_SUMMERS_PER_NODE");
  app.add_option("--margin", flags.margin, "Share of CPUs, memory and bandwidth that is never spared")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.9))
      ->envname("GLEANER_MARGIN");
  app.add_option("--nvml", flags.nvml, "NVIDIA's management library; empty: GPUs by their PCI class only")
      ->capture_default_str();
  app.add_option("--measure-listen", flags.measure_listen,
                 "Serve measurements of bandwidth on HOST:PORT to agents that know the secret");
  app.add_option("--measure-peers", flags.measure_peers,
                 "HOST:PORT of all agents, a headless Service: measure with one of them where the speed is not known");
  app.add_option("--measure-secret-file", flags.measure_secret_file, "File with the secret that all agents share");
  app.add_option("--kubeconfig", flags.kubeconfig, "How to reach the cluster from outside; default: as a pod");
  app.add_option("--context", flags.context, "Context of the kubeconfig");
  app.add_option("--metrics", flags.metrics, "Serve Prometheus metrics on HOST:PORT");
  app.add_option("--health", flags.health, "Serve /healthz and /readyz on HOST:PORT");
  app.add_flag("--once", flags.once, "Look once, without a cluster, and end; with --print");
  app.add_flag("--print", flags.print, "Write the profile as JSON to standard output; with --once");
  app.add_option("--log-level", flags.log_level, "debug, info, warning, error or off")
      ->capture_default_str()
      ->envname("GLEANER_LOG_LEVEL");
}

absl::StatusOr<AgentOptions> to_options(const Flags& flags) {
  if (flags.once != flags.print) return absl::InvalidArgumentError("--once and --print go together");
  AgentOptions options;
  options.node = flags.node;
  if (options.node.empty() && flags.once) {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    options.node = name.data();
  }
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
  GLN_ASSIGN_OR_RETURN(const types::NodeProfile profile, profile_once(env, options, absl::Seconds(1)));
  std::cout << types::to_json(profile).dump(2) << "\n";
  return absl::OkStatus();
}

// Runs until a signal asks it to end.
absl::Status serve(const Env& env, const Flags& flags, const AgentOptions& options) {
  const EndSignals signals;

  kube::Client::Options client_options;
  GLN_ASSIGN_OR_RETURN(client_options.credentials, kube::find_credentials(flags.kubeconfig, flags.context));
  client_options.user_agent = "gleaner-agent/" GLEANER_VERSION;
  GLN_ASSIGN_OR_RETURN(const std::unique_ptr<kube::Client> client, kube::Client::create(env, client_options));
  const auto registry = std::make_shared<prometheus::Registry>();
  GLN_ASSIGN_OR_RETURN(const std::unique_ptr<Agent> agent, Agent::start(env, *client, options, *registry));
  std::unique_ptr<metrics::MetricsServer> metrics;
  if (!flags.metrics.empty()) {
    GLN_ASSIGN_OR_RETURN(const Address address, Address::parse(flags.metrics));
    GLN_ASSIGN_OR_RETURN(metrics, metrics::MetricsServer::start(address, registry));
  }
  std::unique_ptr<kube::HttpServer> health;
  if (!flags.health.empty()) {
    GLN_ASSIGN_OR_RETURN(const Address address, Address::parse(flags.health));
    GLN_ASSIGN_OR_RETURN(
        health,
        kube::HttpServer::start({.listen = address}, kube::health_routes([&agent] { return agent->why_not_ready(); })));
  }
  env.log->info("watching this machine", "node", options.node, "metrics",
                metrics == nullptr ? "none" : metrics->address().to_string(), "health",
                health == nullptr ? "none" : health->address().to_string());
  env.log->info("told to end", "signal", signals.wait());
  return absl::OkStatus();
}

}  // namespace
}  // namespace gleaner::agent

int main(int argc, char** argv) {
  using namespace gleaner;
  kube::prepare_process();
  CLI::App app{"Tells the cluster what this machine has and what of it can be spared"};
  app.name("gleaner-agent");
  app.set_version_flag("--version", GLEANER_VERSION);
  agent::Flags flags;
  agent::add_flags(app, flags);
  if (const std::optional<int> status = gleaner::flags::parse(app, argc, argv)) return *status;
  const auto level = parse_log_level(flags.log_level);
  const auto options = agent::to_options(flags);
  const absl::Status usage = options.ok() ? level.status() : options.status();
  if (!usage.ok()) {
    std::cerr << "gleaner-agent: " << usage.message() << "\n";
    return 2;
  }
  const SystemEnv system({"agent", *level});
  const absl::Status status =
      flags.once ? agent::print_once(system.env(), *options) : agent::serve(system.env(), flags, *options);
  if (status.ok()) return 0;
  std::cerr << "gleaner-agent: " << status.message() << "\n";
  return 1;
}
