// gleaner-operator: watches TrainingJobs and runs them.
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/own_network.h"
#include "common/base/status_macros.h"
#include "common/flags/groups.h"
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

void add_scaling_flags(flags::Command& app, ScalingFlags& flags) {
  app.add_text(
      "--prometheus", flags.prometheus,
      "Prometheus' URL, for step times and the spare resources of machines; default: only the bandwidth model decides");
  app.add_text("--prometheus-token-file", flags.token_file, "File with the bearer token for Prometheus");
  app.add_text("--prometheus-ca-file", flags.ca_file, "File with the CA of Prometheus' certificate");
  app.add_number("--prometheus-interval-seconds", flags.interval_seconds, "Time between two queries of Prometheus")
      .show_default()
      .between(1.0, 600.0);
  app.add_number("--prometheus-window-seconds", flags.window_seconds, "Time over which queries take rates")
      .show_default()
      .between(5.0, 3600.0);
  app.add_texts("--prometheus-query", flags.queries, "NAME=EXPRESSION in place of a default (docs/autoscaler.md)");
  app.add_number("--summer-worth", flags.worth, "Share of the step time that one more summer must save")
      .show_default()
      .between(0.0, 1.0);
  app.add_number("--summer-keep", flags.keep, "Remove a summer that saves a smaller share of the step time")
      .show_default()
      .between(0.0, 1.0);
  app.add_number("--summer-idle-seconds", flags.idle_seconds,
                 "Remove such a summer once it has saved that little for this time")
      .show_default()
      .between(1.0, 86400.0);
  app.add_number("--summer-grow-pause-seconds", flags.grow_pause_seconds, "Pause between two additions to a job")
      .show_default()
      .between(1.0, 86400.0);
  app.add_number("--summer-return-pause-seconds", flags.return_pause_seconds,
                 "Pause before a machine whose owners needed it gets a summer again")
      .show_default()
      .between(1.0, 86400.0);
}

absl::StatusOr<ScalingOptions> scaling_options(const ScalingFlags& flags) {
  ScalingOptions options;
  options.prometheus.url = flags.prometheus;
  options.prometheus.token_file = flags.token_file;
  options.prometheus.ca_file = flags.ca_file;
  options.interval = absl::Seconds(flags.interval_seconds);
  options.window = absl::Seconds(flags.window_seconds);
  options.settings.min_gain = flags.worth;
  options.settings.min_loss = flags.keep;
  options.settings.idle = absl::Seconds(flags.idle_seconds);
  options.settings.grow_pause = absl::Seconds(flags.grow_pause_seconds);
  options.settings.return_pause = absl::Seconds(flags.return_pause_seconds);
  // A reading ages by up to one interval between polls, and by two if a poll fails.
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
  if (options.settings.min_loss > options.settings.min_gain) {
    return absl::InvalidArgumentError("--summer-keep must not be above --summer-worth: summers would come and go");
  }
  return options;
}

struct Flags {
  std::string ns, watch, listen = "0.0.0.0:7070", service = "gleaner-coordinator", pod_ip, identity,
                         metrics = "0.0.0.0:7073", health = "0.0.0.0:7074", summer_image, summer_priority_class,
                         shm_host_path, rdma_resource, levels, log_level = "info";
  flags::KubeFlags kube;
  uint32_t workers = 8;
  double lease_seconds = 15, summer_yield_above = 0.8;
  ScalingFlags scaling;
};

void add_flags(flags::Command& app, Flags& flags) {
  app.add_text("--namespace", flags.ns, "The operator's own namespace; default: that of its service account")
      .optional_name()
      .environment("POD_NAMESPACE");
  app.add_text("--watch-namespace", flags.watch, "Run only the jobs of this namespace; default: of all namespaces")
      .optional_name();
  app.add_text("--listen", flags.listen, "Address at which the coordinator listens for members, HOST:PORT")
      .show_default()
      .address();
  app.add_text("--advertise-service", flags.service, "The Service by which members find the coordinator")
      .show_default();
  app.add_text("--pod-ip", flags.pod_ip, "This replica's address, for that Service's EndpointSlice")
      .environment("POD_IP")
      .required();
  app.add_text("--identity", flags.identity, "This replica's name in the lease; default: the host's name")
      .optional_name()
      .environment("POD_NAME");
  flags::add_metrics(app, flags.metrics).show_default().address();
  flags::add_health(app, flags.health).show_default().address();
  app.add_text("--summer-image", flags.summer_image, "Image that contains gleaner-summer").required();
  app.add_text("--summer-priority-class", flags.summer_priority_class, "PriorityClass of summers");
  app.add_number(
         "--summer-yield-above", flags.summer_yield_above,
         "A summer leaves when other processes use more than this share of its machine's processors' time and none is "
         "idle; 0: never")
      .show_default()
      .between(0.0, 1.0);
  app.add_text("--shm-host-path", flags.shm_host_path,
               "Directory of every machine, with mode 1777, in which pods of a job share memory; default: none");
  app.add_text("--rdma-resource", flags.rdma_resource,
               "Extended resource of RDMA devices that pods request, such as rdma/hca; default: none");
  app.add_text("--topology", flags.levels,
               "Levels of node labels that tell which nodes are near each other, widest first, as for "
               "gleaner-scheduler-ext");
  app.add_number("--threads", flags.workers, "Number of jobs reconciled at the same time")
      .show_default()
      .between(1, 64);
  app.add_old_name("--threads", "--workers");
  app.add_number("--lease-seconds", flags.lease_seconds, "Silence after which another replica takes over")
      .show_default()
      .between(2.0, 600.0);
  add_scaling_flags(app, flags.scaling);
  flags::add_kubeconfig(app, flags.kube);
  flags::add_log_level(app, flags.log_level);
}

std::string replica_name(const Flags& flags) {
  if (!flags.identity.empty()) return flags.identity;
  const std::string host = host_name();
  return host.empty() ? "gleaner-operator" : host;
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
  // A replica that restarts under the same name must have another identity than the replica that holds the lease.
  options.identity = absl::StrCat(replica_name(flags), "_", getpid(), "_", absl::ToUnixMillis(absl::Now()));
  options.summer_image = flags.summer_image;
  options.summer_priority_class = flags.summer_priority_class;
  options.summer_yield_above = flags.summer_yield_above;
  if (!flags.shm_host_path.empty() && flags.shm_host_path[0] != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("--shm-host-path ", flags.shm_host_path, ": expected an absolute path"));
  }
  options.shm_host_path = flags.shm_host_path;
  options.rdma_resource = flags.rdma_resource;
  GLN_ASSIGN_OR_RETURN(options.label_levels, placement::label_levels_of_flag(flags.levels));
  GLN_ASSIGN_OR_RETURN(options.scaling, scaling_options(flags.scaling));
  options.workers = flags.workers;
  options.lease_duration = absl::Seconds(flags.lease_seconds);
  return options;
}

absl::Status start(const Flags& flags) {
  GLN_ASSIGN_OR_RETURN(const LogLevel level, parse_log_level(flags.log_level));
  GLN_ASSIGN_OR_RETURN(const kube::Credentials credentials,
                       kube::find_credentials(flags.kube.kubeconfig, flags.kube.context));
  GLN_ASSIGN_OR_RETURN(const OperatorOptions options, to_options(flags, credentials));
  GLN_ASSIGN_OR_RETURN(const EndSignals signals, EndSignals::start("gleaner-operator"));
  const SystemEnv system({"operator", level});
  return run(system.env(), options, credentials, signals);
}

}  // namespace
}  // namespace gleaner::operation

int main(int argc, char** argv) {
  gleaner::kube::prepare_process();
  gleaner::flags::Program app(
      "gleaner-operator",
      "Runs TrainingJobs on Kubernetes: workers, summers on machines with spare CPU and bandwidth, and the plan",
      GLEANER_VERSION);
  gleaner::operation::Flags flags;
  gleaner::operation::add_flags(app, flags);
  if (const std::optional<int> status = app.parse(argc, argv)) return *status;
  const absl::Status status = gleaner::operation::start(flags);
  const int exit_status = app.report(status);
  if (absl::IsAborted(status)) std::_Exit(exit_status);  // no destructor may run any more, since another replica leads
  return exit_status;
}
