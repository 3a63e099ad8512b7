// gleaner-scheduler-ext: tells kube-scheduler which nodes have enough to spare for a summer, and which are best.
#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_split.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/flags/flags.h"
#include "common/kube/client.h"
#include "common/kube/credentials.h"
#include "common/kube/process.h"
#include "common/metrics/server.h"
#include "operator/placement/topology.h"
#include "scheduler-ext/http/extender.h"
#include "scheduler-ext/http/feeds.h"

namespace gleaner::extender {
namespace {

// The command line as it was typed.
struct Flags {
  std::string listen = "127.0.0.1:7076", metrics, kubeconfig, context, min_bandwidth = "10Mbit", topology,
              log_level = "info";
};

void add_flags(CLI::App& app, Flags& flags) {
  app.add_option("--listen", flags.listen, "IP:PORT for kube-scheduler's calls, /healthz and /readyz")
      ->capture_default_str()
      ->envname("GLEANER_LISTEN");
  app.add_option("--metrics", flags.metrics, "Serve Prometheus metrics on HOST:PORT")->envname("GLEANER_METRICS");
  app.add_option("--kubeconfig", flags.kubeconfig, "Outside a pod; default: $KUBECONFIG, or ~/.kube/config");
  app.add_option("--context", flags.context, "Of the kubeconfig; default: its current one");
  app.add_option("--min-bandwidth", flags.min_bandwidth, "Summers go to no node with less to spare")
      ->capture_default_str();
  app.add_option(
      "--topology", flags.topology,
      "Node labels that say what is near, widest first, comma separated; default: region, zone, and those of "
      "clouds and topology tools for blocks and racks");
  app.add_option("--log-level", flags.log_level, "debug, info, warning, error or off")
      ->capture_default_str()
      ->envname("GLEANER_LOG_LEVEL");
}

struct Options {
  Address listen;
  std::optional<Address> metrics;
  double min_bits_per_second = 0;
  std::vector<std::string> topology;
  LogLevel level = LogLevel::kInfo;
};

absl::StatusOr<Options> to_options(const Flags& flags) {
  Options options;
  GLN_ASSIGN_OR_RETURN(options.listen, Address::parse(flags.listen));
  if (!flags.metrics.empty()) {
    GLN_ASSIGN_OR_RETURN(options.metrics, Address::parse(flags.metrics));
  }
  GLN_ASSIGN_OR_RETURN(options.min_bits_per_second, parse_bits_per_second(flags.min_bandwidth));
  options.topology = flags.topology.empty() ? placement::default_topology()
                                            : std::vector<std::string>(absl::StrSplit(flags.topology, ','));
  GLN_ASSIGN_OR_RETURN(options.level, parse_log_level(flags.log_level));
  return options;
}

// Until SIGTERM or SIGINT. What was begun is answered.
absl::Status serve(const Flags& flags, const Options& options) {
  kube::prepare_process();
  const EndSignals signals;
  const SystemEnv system({"scheduler-ext", options.level});
  const Env& env = system.env();
  GLN_ASSIGN_OR_RETURN(kube::Credentials credentials, kube::find_credentials(flags.kubeconfig, flags.context));
  GLN_ASSIGN_OR_RETURN(const auto client, kube::Client::create(env, {.credentials = std::move(credentials),
                                                                     .user_agent = "gleaner-scheduler-ext"}));
  const auto registry = std::make_shared<prometheus::Registry>();
  std::unique_ptr<metrics::MetricsServer> metrics;
  if (options.metrics) {
    GLN_ASSIGN_OR_RETURN(metrics, metrics::MetricsServer::start(*options.metrics, registry));
  }
  State state(*env.clock, options.min_bits_per_second);
  const auto feeds = Feeds::start(env, *client, state);
  GLN_ASSIGN_OR_RETURN(const auto extender, Extender::start(env, state, *registry,
                                                            {.listen = options.listen,
                                                             .topology = options.topology,
                                                             .why_not_ready = [&feeds] { return feeds->missing(); }}));
  env.log->info("listening", "address", extender->address().to_string());
  env.log->info("told to end", "signal", signals.wait());
  return absl::OkStatus();
}

}  // namespace
}  // namespace gleaner::extender

int main(int argc, char** argv) {
  CLI::App app{"Kubernetes scheduler extender: summers go to nodes with CPU and bandwidth to spare"};
  app.name("gleaner-scheduler-ext");
  app.set_version_flag("--version", GLEANER_VERSION);
  gleaner::extender::Flags flags;
  gleaner::extender::add_flags(app, flags);
  if (const std::optional<int> status = gleaner::flags::parse(app, argc, argv)) return *status;
  const auto options = gleaner::extender::to_options(flags);
  if (!options.ok()) {
    std::cerr << "gleaner-scheduler-ext: " << options.status().message() << "\n";
    return 2;
  }
  const absl::Status status = gleaner::extender::serve(flags, *options);
  if (status.ok()) return 0;
  std::cerr << "gleaner-scheduler-ext: " << status.message() << "\n";
  return 1;
}
