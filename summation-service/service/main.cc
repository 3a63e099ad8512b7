// gleaner-summer: a summation server on a machine with CPU and bandwidth to spare.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/flags/flags.h"
#include "summation-service/service/background.h"
#include "summation-service/service/server.h"
#include "summation-service/service/usage.h"
#include "summation-service/service/watch.h"

namespace gleaner::service {
namespace {

// The command line as it was typed; parsed by to_options().
struct Flags {
  std::string coordinator, listen = "0.0.0.0:0", advertise, token_file, ca_file, job = "default", bandwidth,
                           memory = "0", pace, kernel, metrics, log_level = "info", transports = "auto",
                           shm_directory = "/dev/shm", rdma_device, rdma_near;
  int index = -1;
  double start_timeout = 60, yield_above = 0, rdma_poll = 0;
  bool background = false;
};

void add_flags(CLI::App& app, Flags& flags) {
  app.add_option("--coordinator", flags.coordinator, "The job's coordinator, HOST:PORT")
      ->required()
      ->envname("GLEANER_COORDINATOR");
  app.add_option("--listen", flags.listen, "Where workers connect to, HOST:PORT; port 0: any free one")
      ->capture_default_str();
  app.add_option("--advertise", flags.advertise, "HOST that workers shall use instead of the one of --listen");
  app.add_option("--token-file", flags.token_file, "File with the job's token")
      ->required()
      ->envname("GLEANER_TOKEN_FILE");
  app.add_option("--ca-file", flags.ca_file,
                 "PEM file of whom the coordinator's certificate must come from; default: no TLS")
      ->envname("GLEANER_CA_FILE");
  app.add_option("--job", flags.job, "Name of the job")->capture_default_str()->envname("GLEANER_JOB");
  app.add_option("--index", flags.index, "Which summer of the job this is; default: the next free one")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  app.add_option("--bandwidth", flags.bandwidth, "This machine's spare bandwidth each way, for example 25Gbit");
  app.add_option("--memory", flags.memory, "Most memory for sums in progress, for example 512MiB; 0: no limit")
      ->capture_default_str();
  app.add_option(
      "--pace", flags.pace,
      "Most that it sends by TCP, to all workers together: for example 5Gbit; or 'plan': the bandwidth that the plan "
      "in force reckons with; default: no limit. Shared memory takes nothing from the network");
  app.add_flag("--background", flags.background, "Take the processors only when nobody else wants them");
  app.add_option("--yield-above", flags.yield_above,
                 "Leave when others take more than this share of the processors' time and nothing is idle; 0: never")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--kernel", flags.kernel, "Sum kernel: scalar, avx2 or avx512; default: the best here")
      ->envname("GLEANER_KERNEL");
  app.add_option("--metrics", flags.metrics, "Serve Prometheus metrics on HOST:PORT");
  app.add_option("--transports", flags.transports,
                 "What connections may go by, from best to worst: auto (shm,rdma,tcp), or a list; one without tcp "
                 "allows nothing else")
      ->capture_default_str()
      ->envname("GLEANER_TRANSPORTS");
  app.add_option("--shm-dir", flags.shm_directory, "shm: directory where members on one machine find each other")
      ->capture_default_str()
      ->envname("GLEANER_SHM_DIR");
  app.add_option("--rdma-device", flags.rdma_device,
                 "rdma: device, device:port or device:port:gid, or a list of them; default: any that is up")
      ->envname("GLEANER_RDMA_DEVICE");
  app.add_option("--rdma-near", flags.rdma_near,
                 "rdma: use the adapters near this NUMA node, or near the device with this PCI address; default: near "
                 "the cores it may run on")
      ->envname("GLEANER_RDMA_NEAR");
  app.add_option(
         "--rdma-poll", flags.rdma_poll,
         "rdma: seconds for which more is looked for without sleeping, each time that something came; takes a core "
         "meanwhile")
      ->capture_default_str()
      ->envname("GLEANER_RDMA_POLL")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--start-timeout", flags.start_timeout, "Seconds until every member must have joined")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  flags::add_old_name(app, "--start-timeout", "--join-timeout");
  app.add_option("--log-level", flags.log_level, "debug, info, warning, error or off")
      ->capture_default_str()
      ->envname("GLEANER_LOG_LEVEL");
}

absl::StatusOr<ServerOptions> to_options(const Flags& flags) {
  ServerOptions options;
  GLN_ASSIGN_OR_RETURN(options.coordinator, Address::parse(flags.coordinator));
  GLN_ASSIGN_OR_RETURN(options.listen, Address::parse(flags.listen));
  options.advertise = flags.advertise;
  if (flags.advertise.empty() && (options.listen.host == "0.0.0.0" || options.listen.host == "::")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", flags.listen,
        " does not say where workers can reach this summer; give an address of this machine, or --advertise"));
  }
  options.job = flags.job;
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
  options.token_file = flags.token_file;
  options.ca_file = flags.ca_file;
  GLN_ASSIGN_OR_RETURN(options.token, read_secret_file(flags.token_file));
  return options;
}

// How long a summer that the job went on without stays away: longer each time that the job soon did so again, as it
// does while some worker can't reach it.
class TimeAway {
 public:
  absl::Duration after(absl::Duration served) {
    if (served > kLongEnough) pause_ = kLeast;
    return std::exchange(pause_, std::min(2 * pause_, kMost));
  }

 private:
  static constexpr absl::Duration kLeast = absl::Milliseconds(250);
  static constexpr absl::Duration kMost = absl::Seconds(30);
  static constexpr absl::Duration kLongEnough = absl::Minutes(1);

  absl::Duration pause_ = kLeast;
};

// Has the summer leave as SIGTERM does, whatever it is at, and ends the process if that takes too long: its connections
// close with it, which tells the job as much.
Watch::Actions giving_way() {
  return {read_usage, [] { kill(getpid(), SIGTERM); }, [] { _exit(0); }};
}

// Serves until the job ends, a signal asks to leave or others need the machine. A job that took this summer for lost
// may have it back.
absl::Status serve(const Env& env, ServerOptions options, const Flags& flags) {
  const EndSignals signals;
  std::optional<Watch> watch;
  if (flags.yield_above > 0) options.watch = &watch.emplace(env, flags.yield_above, giving_way());
  if (flags.background) run_in_background();
  TimeAway away;
  absl::Status status;
  bool told = false;
  while (true) {
    const absl::Duration began = env.clock->since_start();
    GLN_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::create(env, options));
    signals.during([&] { status = server->run(); },
                   [&](int signal) {
                     env.log->info("leaving", "signal", signal);
                     told = true;
                     server->stop();
                   });
    if (!absl::IsAborted(status) || told) return status;
    const absl::Duration pause = away.after(env.clock->since_start() - began);
    env.log->warning("the job went on without this summer", "reason", status.message(), "back in",
                     absl::FormatDuration(pause));
    if (signals.wait(pause) != 0) return absl::OkStatus();
  }
}

}  // namespace
}  // namespace gleaner::service

int main(int argc, char** argv) {
  using gleaner::service::Flags;
  CLI::App app{"Sums gradients for a training job on a machine with CPU and bandwidth to spare"};
  app.name("gleaner-summer");
  app.set_version_flag("--version", GLEANER_VERSION);
  Flags flags;
  gleaner::service::add_flags(app, flags);
  if (const std::optional<int> status = gleaner::flags::parse(app, argc, argv)) return *status;
  const auto options = gleaner::service::to_options(flags);
  const auto level = gleaner::parse_log_level(flags.log_level);
  const absl::Status usage = options.ok() ? level.status() : options.status();
  if (!usage.ok()) {
    std::cerr << "gleaner-summer: " << usage.message() << "\n";
    return absl::IsInvalidArgument(usage) ? 2 : 1;
  }
  const gleaner::SystemEnv system({"summer", *level});
  const absl::Status status = gleaner::service::serve(system.env(), *options, flags);
  if (status.ok()) return 0;
  std::cerr << "gleaner-summer: " << status.message() << "\n";
  return 1;
}
