// gleaner-summer: a summation server on a machine with spare CPU and bandwidth.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/backoff.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/exit_timer.h"
#include "common/base/limits.h"
#include "common/base/own_network.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/flags/groups.h"
#include "summation-service/service/background.h"
#include "summation-service/service/server.h"
#include "summation-service/service/usage.h"
#include "summation-service/service/watch.h"

namespace gleaner::service {
namespace {

// The values on the command line. to_options() parses them.
struct Flags {
  flags::JoinFlags join;
  std::string listen = "0.0.0.0:0", advertise, bandwidth, memory = "0", pace, kernel, metrics, log_level = "info",
              transports = "auto", shm_directory = "/dev/shm", rdma_device, rdma_near;
  int index = -1;
  double start_timeout = 60, yield_above = 0, rdma_poll = 0;
  bool background = false;
};

void add_flags(flags::Command& app, Flags& flags) {
  flags::add_coordinator(app, flags.join).required();
  app.add_text("--listen", flags.listen, "Address for workers to connect to, HOST:PORT; port 0: any free port")
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

absl::StatusOr<ServerOptions> to_options(const Flags& flags) {
  ServerOptions options;
  GLN_ASSIGN_OR_RETURN(options.coordinator, Address::parse(flags.join.coordinator));
  GLN_ASSIGN_OR_RETURN(options.listen, Address::parse(flags.listen));
  options.advertise = flags.advertise;
  if (is_unspecified(flags.advertise)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--advertise ", flags.advertise, ": expected an address or a name of this machine, at which workers reach it"));
  }
  if (flags.advertise.empty() && is_unspecified(options.listen.host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", flags.listen,
        " is not an address at which workers can reach this summer; give an address of this machine, or --advertise"));
  }
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

// Computes the pause of a summer before it joins a job again that went on without it. The pause doubles if the job goes
// on without the summer again within a minute, as happens while some worker can't reach the summer.
class RejoinBackoff {
 public:
  absl::Duration next(absl::Duration served) {
    if (served > kLongEnough) pause_ = absl::ZeroDuration();
    return pause_ = next_pause(pause_, kLeast, kMost);
  }

 private:
  static constexpr absl::Duration kLeast = absl::Milliseconds(250);
  static constexpr absl::Duration kMost = absl::Seconds(30);
  static constexpr absl::Duration kLongEnough = absl::Minutes(1);

  absl::Duration pause_;  // the last one
};

// Makes the summer leave as SIGTERM does, in every state of the summer. If that takes too long, ends the process; its
// connections then close, which tells the job the same.
Watch::Actions leave_or_exit() {
  return {read_usage, [] { kill(getpid(), SIGTERM); }, [] { _exit(0); }};
}

// Serves until the job ends, a signal asks the summer to leave, or other processes need the machine. If the job counts
// the summer as lost, the summer joins the job again.
absl::Status serve(const Env& env, ServerOptions options, const Flags& flags) {
  GLN_ASSIGN_OR_RETURN(const EndSignals signals, EndSignals::start("gleaner-summer", kSignalTimeout));
  std::optional<Watch> watch;
  if (flags.yield_above > 0) options.watch = &watch.emplace(env, flags.yield_above, leave_or_exit());
  if (flags.background) run_in_background();  // but for the threads above, which sleep until they are needed
  RejoinBackoff backoff;
  absl::Status status;
  bool stop_requested = false;
  while (true) {
    const absl::Duration began = env.clock->since_start();
    GLN_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::create(env, options));
    signals.during([&] { status = server->run(); },
                   [&](int signal) {
                     env.log->info("leaving", "signal", signal);
                     stop_requested = true;
                     server->stop();
                   });
    if (!absl::IsAborted(status) || stop_requested) {
      if (!stop_requested) exit_after(kShutdownTimeout, status.ok() ? 0 : 1, status.message());
      return status;
    }
    const absl::Duration pause = backoff.next(env.clock->since_start() - began);
    env.log->warning("the job went on without this summer", "reason", status.message(), "joins again in",
                     absl::FormatDuration(pause));
    if (signals.wait(pause) != 0) return absl::OkStatus();
  }
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
  const auto options = gleaner::service::to_options(flags);
  const auto level = gleaner::parse_log_level(flags.log_level);
  const absl::Status usage = options.ok() ? level.status() : options.status();
  if (!usage.ok()) return app.report(usage);
  gleaner::report_lack_of_memory("gleaner-summer");
  const gleaner::SystemEnv system({"summer", *level});
  return app.report(gleaner::service::serve(system.env(), *options, flags), 1);
}
