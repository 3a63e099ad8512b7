// gleaner-operator: watches TrainingJobs and runs them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/kube/process.h"
#include "operator/service/operator.h"

namespace gleaner::operation {
namespace {

struct Flags {
  std::string ns, watch, listen = "0.0.0.0:7070", service = "gleaner-coordinator", pod_ip, identity,
                         metrics = "0.0.0.0:7073", health = "0.0.0.0:7074", summer_image, summer_priority_class,
                         kubeconfig, context, log_level = "info";
  uint32_t workers = 8;
  double lease_seconds = 15;
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
  app.add_option("--workers", flags.workers, "Jobs looked at at once")->capture_default_str()->check(CLI::Range(1, 64));
  app.add_option("--lease-seconds", flags.lease_seconds, "Silence after which another replica takes over")
      ->capture_default_str()
      ->check(CLI::Range(2.0, 600.0));
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::Status status = gleaner::operation::start(flags);
  if (status.ok()) return 0;
  std::cerr << "gleaner-operator: " << status.message() << "\n";
  if (absl::IsAborted(status)) std::_Exit(1);  // nothing of ours may act any more
  return absl::IsInvalidArgument(status) ? 2 : 1;
}
