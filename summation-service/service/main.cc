// gleaner-summer: a summation server on a machine with spare CPU and bandwidth.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/exit_timer.h"
#include "common/base/limits.h"
#include "common/base/own_network.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/flags/groups.h"
#include "summation-service/service/await_jobs.h"
#include "summation-service/service/background.h"
#include "summation-service/service/job_service.h"
#include "summation-service/service/server.h"
#include "summation-service/service/usage.h"
#include "summation-service/service/watch.h"

namespace gleaner::service {
namespace {

// The values on the command line. to_options() parses them.
struct Flags {
  flags::JoinFlags join;
  std::string await_jobs, listen = "0.0.0.0:0", advertise, bandwidth, memory = "0", pace, kernel, metrics,
                          log_level = "info", transports = "auto", shm_directory = "/dev/shm", rdma_device, rdma_near;
  int index = -1;
  double start_timeout = 60, yield_above = 0, rdma_poll = 0;
  bool background = false;
};

void add_flags(flags::Command& app, Flags& flags) {
  flags::add_coordinator(app, flags.join);
  app.add_text(
         "--await-jobs", flags.await_jobs,
         "Instead of --coordinator: wait on HOST:PORT for the invitations of jobs, and serve one after the other. "
         "--token-file then has a token of the summers, which their inviters know")
      .address();
  app.add_text("--listen", flags.listen,
               "Address for workers to connect to, HOST:PORT; port 0: any free port. With --await-jobs by default any "
               "port of its HOST")
      .show_default()
      .address();
  app.add_text("--advertise", flags.advertise, "HOST at which workers reach this summer, if not that of --listen");
  flags::add_proof(app, flags.join).required();
  flags::add_job(app, flags.join).show_default();
  app.add_number("--index", flags.index, "Index of this summer in the job; default: the next free one")
      .between(0, std::numeric_limits<int>::max());
  app.add_text("--bandwidth", flags.bandwidth, "This machine's spare bandwidth each way, for example 25Gbit");
  app.add_text("--memory", flags.memory, "Limit on the memory for sums in progress, for example 512MiB; 0: no limit")
      .show_default();
  app.add_text(
      "--pace", flags.pace,
      "Limit of the rate at which the summer sends by TCP to all workers together, for example 5Gbit; or 'plan': its "
      "bandwidth in the plan in force; default: no limit. Frames through shared memory don't count");
  app.add_switch("--background", flags.background, "Use only processor time that no other process wants");
  app.add_number(
         "--yield-above", flags.yield_above,
         "Leave when other processes take more than this share of the processors' time and none is idle; 0: never")
      .show_default()
      .between(0.0, 1.0);
  flags::add_kernel(app, flags.kernel);
  flags::add_metrics(app, flags.metrics);
  app.add_text(
         "--transports", flags.transports,
         "Transports that connections may use, from best to worst: auto (shm,rdma,tcp), or a list. Without tcp in "
         "the list, connections never fall back to TCP")
      .show_default()
      .environment("GLEANER_TRANSPORTS");
  app.add_text("--shm-dir", flags.shm_directory, "shm: directory in which members on one machine find each other")
      .show_default()
      .environment("GLEANER_SHM_DIR");
  app.add_text("--rdma-device", flags.rdma_device,
               "rdma: device, device:port or device:port:gid, or a list of them; default: any that is up")
      .environment("GLEANER_RDMA_DEVICE");
  app.add_text("--rdma-near", flags.rdma_near,
               "rdma: use the adapters near this NUMA node, or near the device with this PCI address; default: near "
               "the cores that the summer may run on")
      .environment("GLEANER_RDMA_NEAR");
  app.add_number(
         "--rdma-poll", flags.rdma_poll,
         "rdma: seconds for which the thread polls after each frame before it sleeps; it occupies a core meanwhile")
      .show_default()
      .environment("GLEANER_RDMA_POLL")
      .between(0.0, 1e6);
  app.add_number("--start-timeout", flags.start_timeout, "Seconds until every member must have joined")
      .show_default()
      .positive();
  app.add_old_name("--start-timeout", "--join-timeout");
  flags::add_log_level(app, flags.log_level);
}

// Sets the addresses of a summer that waits for jobs. Its invitations name the coordinator, the job, and the host at
// which the summer is reached if it listens on all addresses.
absl::Status set_waiting_addresses(const flags::Command& app, const Flags& flags, ServerOptions& options) {
  for (const char* flag : {"--coordinator", "--job", "--index", "--ca-file"}) {
    if (app.has_on_command_line(flag)) {
      return absl::InvalidArgumentError(absl::StrCat(flag, " is of one job, and --await-jobs serves many: give one"));
    }
  }
  GLN_ASSIGN_OR_RETURN(const Address waiting, Address::parse(flags.await_jobs));
  if (!app.has_on_command_line("--listen")) options.listen = {waiting.host, 0};
  return absl::OkStatus();
}

absl::Status set_addresses(const flags::Command& app, const Flags& flags, ServerOptions& options) {
  GLN_ASSIGN_OR_RETURN(options.listen, Address::parse(flags.listen));
  options.advertise = flags.advertise;
  if (is_unspecified(flags.advertise)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--advertise ", flags.advertise, ": expected an address or a name of this machine, at which workers reach it"));
  }
  if (!flags.await_jobs.empty()) return set_waiting_addresses(app, flags, options);
  if (flags.join.coordinator.empty()) {
    return absl::InvalidArgumentError("--coordinator or --await-jobs is required");
  }
  GLN_ASSIGN_OR_RETURN(options.coordinator, Address::parse(flags.join.coordinator));
  if (flags.advertise.empty() && is_unspecified(options.listen.host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", flags.listen,
        " is not an address at which workers can reach this summer; give an address of this machine, or --advertise"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ServerOptions> to_options(const flags::Command& app, const Flags& flags) {
  ServerOptions options;
  GLN_RETURN_IF_ERROR(set_addresses(app, flags, options));
  options.job = flags.join.job;
  if (flags.index >= 0) options.index = static_cast<uint32_t>(flags.index);
  if (!flags.bandwidth.empty()) {
    GLN_ASSIGN_OR_RETURN(options.bits_per_second, parse_bits_per_second(flags.bandwidth));
  }
  GLN_ASSIGN_OR_RETURN(options.memory_cap_bytes, parse_bytes(flags.memory));
  options.pace_by_plan = flags.pace == "plan";
  if (!flags.pace.empty() && !options.pace_by_plan) {
    GLN_ASSIGN_OR_RETURN(options.pace_bits_per_second, parse_bits_per_second(flags.pace));
  }
  options.kernel = flags.kernel;
  auto preferences = transport::parse_preferences(flags.transports);
  if (!preferences.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--transports ", preferences.status().message()));
  }
  options.transports.preferences = *std::move(preferences);
  if (!absl::StartsWith(flags.shm_directory, "/")) {
    return absl::InvalidArgumentError(absl::StrCat("--shm-dir ", flags.shm_directory, ": expected an absolute path"));
  }
  options.transports.shm_directory = flags.shm_directory;
  options.transports.rdma_device = flags.rdma_device;
  options.transports.rdma_near = flags.rdma_near;
  options.transports.rdma_poll = absl::Seconds(flags.rdma_poll);
  if (!flags.metrics.empty()) {
    GLN_ASSIGN_OR_RETURN(options.metrics, Address::parse(flags.metrics));
  }
  options.join_timeout = absl::Seconds(flags.start_timeout);
  options.token_file = flags.join.token_file;
  options.ca_file = flags.join.ca_file;
  GLN_ASSIGN_OR_RETURN(options.token, read_secret_file(flags.join.token_file));
  return options;
}

// Makes the summer leave as SIGTERM does, in every state of the summer. If that takes too long, ends the process; its
// connections then close, which tells the job the same.
Watch::Actions leave_or_exit() {
  return {read_usage, [] { kill(getpid(), SIGTERM); }, [] { _exit(0); }};
}

absl::Status serve(const Env& env, ServerOptions options, const Flags& flags) {
  GLN_ASSIGN_OR_RETURN(const EndSignals signals, EndSignals::start("gleaner-summer", kSignalTimeout));
  std::optional<Watch> watch;
  if (flags.yield_above > 0) options.watch = &watch.emplace(env, flags.yield_above, leave_or_exit());
  if (flags.background) run_in_background();  // but for the threads above, which sleep until they are needed
  if (!flags.await_jobs.empty()) {
    GLN_ASSIGN_OR_RETURN(const Address address, Address::parse(flags.await_jobs));
    return await_jobs(env, signals, address, options);
  }
  const JobOutcome outcome = serve_job(env, signals, options);
  if (!outcome.stop_requested) exit_after(kShutdownTimeout, outcome.status.ok() ? 0 : 1, outcome.status.message());
  return outcome.status;
}

}  // namespace
}  // namespace gleaner::service

int main(int argc, char** argv) {
  using gleaner::service::Flags;
  gleaner::flags::Program app(
      "gleaner-summer", "Sums gradients for a training job on a machine with spare CPU and bandwidth", GLEANER_VERSION);
  Flags flags;
  gleaner::service::add_flags(app, flags);
  if (const std::optional<int> status = app.parse(argc, argv)) return *status;
  const auto options = gleaner::service::to_options(app, flags);
  const auto level = gleaner::parse_log_level(flags.log_level);
  const absl::Status usage = options.ok() ? level.status() : options.status();
  if (!usage.ok()) return app.report(usage);
  gleaner::report_lack_of_memory("gleaner-summer");
  const gleaner::SystemEnv system({"summer", *level});
  return app.report(gleaner::service::serve(system.env(), *options, flags), 1);
}
