// gleaner-scheduler-ext tells kube-scheduler which nodes have enough spare resources for a summer, and which are best.
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/flags/groups.h"
#include "common/kube/client.h"
#include "common/kube/credentials.h"
#include "common/kube/process.h"
#include "common/metrics/server.h"
#include "common/placement/node_labels.h"
#include "scheduler-ext/http/extender.h"
#include "scheduler-ext/http/feeds.h"

namespace gleaner::extender {
namespace {

// The values on the command line.
struct Flags {
  std::string listen = "127.0.0.1:7076", metrics, min_bandwidth = "10Mbit", levels, log_level = "info";
  flags::KubeFlags kube;
};

void add_flags(flags::Command& app, Flags& flags) {
  app.add_text("--listen", flags.listen, "HOST:PORT for kube-scheduler's calls, /healthz and /readyz")
      .show_default()
      .address()
      .environment("GLEANER_LISTEN");
  flags::add_metrics(app, flags.metrics).environment("GLEANER_METRICS");
  flags::add_kubeconfig(app, flags.kube);
  app.add_text("--min-bandwidth", flags.min_bandwidth, "Nodes with less spare bandwidth get no summer").show_default();
  app.add_text("--topology", flags.levels,
               "Levels of node labels that define nearness, widest first, comma separated; | separates labels of one "
               "level, of which the first that a node has counts; default: region, zone, and those of clouds and "
               "topology tools for blocks, switches and racks");
  flags::add_log_level(app, flags.log_level);
}

struct Options {
  Address listen;
  double min_bits_per_second = 0;
  placement::LabelLevels levels;
  LogLevel level = LogLevel::kInfo;
};

absl::StatusOr<Options> to_options(const Flags& flags) {
  Options options;
  GLN_ASSIGN_OR_RETURN(options.listen, Address::parse(flags.listen));
  GLN_ASSIGN_OR_RETURN(options.min_bits_per_second, parse_bits_per_second(flags.min_bandwidth));
  GLN_ASSIGN_OR_RETURN(options.levels, placement::label_levels_of_flag(flags.levels));
  GLN_ASSIGN_OR_RETURN(options.level, parse_log_level(flags.log_level));
  return options;
}

// Serves until SIGTERM or SIGINT, and completes answers in progress.
absl::Status serve(const Flags& flags, const Options& options) {
  kube::prepare_process();
  GLN_ASSIGN_OR_RETURN(const EndSignals signals, EndSignals::start("gleaner-scheduler-ext"));
  const SystemEnv system({"scheduler-ext", options.level});
  const Env& env = system.env();
  GLN_ASSIGN_OR_RETURN(kube::Credentials credentials,
                       kube::find_credentials(flags.kube.kubeconfig, flags.kube.context));
  GLN_ASSIGN_OR_RETURN(const auto client, kube::Client::create(env, {.credentials = std::move(credentials),
                                                                     .user_agent = "gleaner-scheduler-ext"}));
  const auto registry = std::make_shared<prometheus::Registry>();
  GLN_ASSIGN_OR_RETURN(const auto metrics, metrics::serve_if_given(flags.metrics, registry));
  State state(*env.clock, options.min_bits_per_second);
  const Feeds feeds(env, *client, state);
  GLN_ASSIGN_OR_RETURN(const auto extender,
                       Extender::start(env, state, *registry,
                                       {.listen = options.listen, .levels = options.levels, .why_not_ready = [&feeds] {
                                          return feeds.missing();
                                        }}));
  env.log->info("listening", "address", extender->address().to_string());
  env.log->info("ending on a signal", "signal", signals.wait());
  return absl::OkStatus();
}

}  // namespace
}  // namespace gleaner::extender

int main(int argc, char** argv) {
  gleaner::flags::Program app("gleaner-scheduler-ext",
                              "Kubernetes scheduler extender: places summers on nodes with spare CPU and bandwidth",
                              GLEANER_VERSION);
  gleaner::extender::Flags flags;
  gleaner::extender::add_flags(app, flags);
  if (const std::optional<int> status = app.parse(argc, argv)) return *status;
  const auto options = gleaner::extender::to_options(flags);
  if (!options.ok()) return app.report(options.status(), 2);
  return app.report(gleaner::extender::serve(flags, *options), 1);
}
