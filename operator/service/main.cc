// gleaner-operator: watches TrainingJobs and runs them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/flags/flags.h"
#include "common/kube/process.h"
#include "operator/service/operator.h"

namespace gleaner::operation {
namespace {

struct ScalingFlags {
  std::string prometheus, token_file, ca_file;
  std::vector<std::string> queries;
  double interval_seconds = 15, window_seconds = 60, worth = 0.01, keep = 0.005, idle_seconds = 120,
         grow_pause_seconds = 60, return_pause_seconds = 30;
};

void add_scaling_flags(CLI::App& app, ScalingFlags& flags) {
  app.add_option("--prometheus", flags.prometheus,
                 "Prometheus' URL, asked for step times and what machines spare; default: summers by the model alone");
  app.add_option("--prometheus-token-file", flags.token_file, "Bearer token for it");
  app.add_option("--prometheus-ca-file", flags.ca_file, "CA of its certificate");
  app.add_option("--prometheus-interval-seconds", flags.interval_seconds, "How often it is asked")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 600.0));
  app.add_option("--prometheus-window-seconds", flags.window_seconds, "Time that rates are taken over")
      ->capture_default_str()
      ->check(CLI::Range(5.0, 3600.0));
  app.add_option("--prometheus-query", flags.queries, "NAME=EXPRESSION in place of a default (docs/autoscaler.md)");
  app.add_option("--summer-worth", flags.worth, "Share of the step that one more summer must buy")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--summer-keep", flags.keep, "A summer that buys a smaller share goes")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--summer-idle-seconds", flags.idle_seconds, "After so long")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
  app.add_option("--summer-grow-pause-seconds", flags.grow_pause_seconds, "Between two additions to a job")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
  app.add_option("--summer-return-pause-seconds", flags.return_pause_seconds,
                 "Before a machine whose owners needed it is asked again")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
}

absl::StatusOr<ScalingOptions> scaling_options(const ScalingFlags& flags) {
  ScalingOptions options;
  options.prometheus.url = flags.prometheus;
  options.prometheus.token_file = flags.token_file;
  options.prometheus.ca_file = flags.ca_file;
  options.interval = absl::Seconds(flags.interval_seconds);
  options.window = absl::Seconds(flags.window_seconds);
  options.settings.worth = flags.worth;
  options.settings.keep = flags.keep;
  options.settings.idle = absl::Seconds(flags.idle_seconds);
  options.settings.grow_pause = absl::Seconds(flags.grow_pause_seconds);
  options.settings.return_pause = absl::Seconds(flags.return_pause_seconds);
  // Readings are as old as two rounds of asking at most.
  options.settings.fresh = options.window + 2 * options.interval;
  const Queries known = default_queries();
  for (const std::string& query : flags.queries) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(query, absl::MaxSplits('=', 1));
    if (!known.contains(parts.first) || parts.second.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--prometheus-query: expected NAME=EXPRESSION with a NAME of "
                       "docs/autoscaler.md, not '",
                       query, "'"));
    }
    options.queries[parts.first] = parts.second;
  }
  if (options.settings.keep > options.settings.worth) {
    return absl::InvalidArgumentError("--summer-keep must not be above --summer-worth: summers would come and go");
  }
  return options;
}

struct Flags {
  std::string ns, watch, listen = "0.0.0.0:7070", service = "gleaner-coordinator", pod_ip, identity,
                         metrics = "0.0.0.0:7073", health = "0.0.0.0:7074", summer_image, summer_priority_class,
                         shm_host_path, rdma_resource, kubeconfig, context, log_level = "info";
  uint32_t workers = 8;
  double lease_seconds = 15, summer_yield_above = 0.8;
  ScalingFlags scaling;
};

void add_flags(CLI::App& app, Flags& flags) {
  app.add_option("--namespace", flags.ns, "The operator's own namespace; default: that of its service account")
      ->envname("POD_NAMESPACE");
  app.add_option("--watch-namespace", flags.watch, "Look after the jobs of this namespace only; default: all");
  app.add_option("--listen", flags.listen, "Where the coordinator listens for members, HOST:PORT")
      ->capture_default_str();
  app.add_option("--advertise-service", flags.service, "The Service by which members find the coordinator")
      ->capture_default_str();
  app.add_option("--pod-ip", flags.pod_ip, "This replica's address, for that Service's EndpointSlice")
      ->envname("POD_IP")
      ->required();
  app.add_option("--identity", flags.identity, "This replica's name in the lease; default: the host's name")
      ->envname("POD_NAME");
  app.add_option("--metrics", flags.metrics, "Serve Prometheus metrics on HOST:PORT")->capture_default_str();
  app.add_option("--health", flags.health, "Serve /healthz and /readyz on HOST:PORT")->capture_default_str();
  app.add_option("--summer-image", flags.summer_image, "Image with gleaner-summer in it")->required();
  app.add_option("--summer-priority-class", flags.summer_priority_class, "PriorityClass of summers");
  app.add_option(
         "--summer-yield-above", flags.summer_yield_above,
         "A summer leaves when others take more than this share of its machine's processors' time and nothing is "
         "idle; 0: never")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  app.add_option(
      "--shm-host-path", flags.shm_host_path,
      "Directory of every machine, with mode 1777, that pods of a job share for shared memory; default: none");
  app.add_option(
      "--rdma-resource", flags.rdma_resource,
      "Extended resource that stands for an RDMA device, such as rdma/hca, for pods to ask for; default: none");
  app.add_option("--threads", flags.workers, "Jobs looked at at once")->capture_default_str()->check(CLI::Range(1, 64));
  flags::add_old_name(app, "--threads", "--workers");
  app.add_option("--lease-seconds", flags.lease_seconds, "Silence after which another replica takes over")
      ->capture_default_str()
      ->check(CLI::Range(2.0, 600.0));
  add_scaling_flags(app, flags.scaling);
  app.add_option("--kubeconfig", flags.kubeconfig, "Outside a pod; default: $KUBECONFIG, then ~/.kube/config");
  app.add_option("--context", flags.context, "Context of the kubeconfig; default: its current one");
  app.add_option("--log-level", flags.log_level, "debug, info, warning, error or off")
      ->capture_default_str()
      ->envname("GLEANER_LOG_LEVEL");
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "gleaner-operator";
}

absl::StatusOr<OperatorOptions> to_options(const Flags& flags, const kube::Credentials& credentials) {
  OperatorOptions options;
  options.ns = flags.ns.empty() ? credentials.ns : flags.ns;
  options.watch = flags.watch;
  GLN_ASSIGN_OR_RETURN(options.listen, Address::parse(flags.listen));
  GLN_ASSIGN_OR_RETURN(options.metrics, Address::parse(flags.metrics));
  GLN_ASSIGN_OR_RETURN(options.health, Address::parse(flags.health));
  options.service = flags.service;
  options.pod_ip = flags.pod_ip;
  // A replica that comes back under the same name must not be taken for the one that holds the lease.
  options.identity = absl::StrCat(flags.identity.empty() ? host_name() : flags.identity, "_", getpid(), "_",
                                  absl::ToUnixMillis(absl::Now()));
  options.summer_image = flags.summer_image;
  options.summer_priority_class = flags.summer_priority_class;
  options.summer_yield_above = flags.summer_yield_above;
  if (!flags.shm_host_path.empty() && flags.shm_host_path[0] != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("--shm-host-path ", flags.shm_host_path, ": expected an absolute path"));
  }
  options.shm_host_path = flags.shm_host_path;
  options.rdma_resource = flags.rdma_resource;
  GLN_ASSIGN_OR_RETURN(options.scaling, scaling_options(flags.scaling));
  options.workers = flags.workers;
  options.lease_duration = absl::Seconds(flags.lease_seconds);
  return options;
}

absl::Status start(const Flags& flags) {
  GLN_ASSIGN_OR_RETURN(const LogLevel level, parse_log_level(flags.log_level));
  GLN_ASSIGN_OR_RETURN(const kube::Credentials credentials, kube::find_credentials(flags.kubeconfig, flags.context));
  GLN_ASSIGN_OR_RETURN(const OperatorOptions options, to_options(flags, credentials));
  const EndSignals signals;
  const SystemEnv system({"operator", level});
  return run(system.env(), options, credentials, signals);
}

}  // namespace
}  // namespace gleaner::operation

int main(int argc, char** argv) {
  gleaner::kube::prepare_process();
  CLI::App app{"Runs TrainingJobs on Kubernetes: workers, summers on machines with something to spare, and the plan"};
  app.name("gleaner-operator");
  app.set_version_flag("--version", GLEANER_VERSION);
  gleaner::operation::Flags flags;
  gleaner::operation::add_flags(app, flags);
  if (const std::optional<int> status = gleaner::flags::parse(app, argc, argv)) return *status;
  const absl::Status status = gleaner::operation::start(flags);
  if (status.ok()) return 0;
  std::cerr << "gleaner-operator: " << status.message() << "\n";
  if (absl::IsAborted(status)) std::_Exit(1);  // nothing of ours may act any more
  return absl::IsInvalidArgument(status) ? 2 : 1;
}
