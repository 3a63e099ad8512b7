// gleaner-summer: a summation server on a machine with CPU and bandwidth to spare.
#include <CLI/CLI.hpp>
#include <iostream>

#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "summation-service/service/server.h"

namespace gleaner::service {
namespace {

// The command line as it was typed; parsed by to_options().
struct Flags {
  std::string coordinator, listen = "0.0.0.0:0", advertise, token_file, ca_file, job = "default", bandwidth,
                           memory = "0", kernel, metrics, log_level = "info";
  int index = -1;
  double join_timeout = 60;
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
      ->check(CLI::NonNegativeNumber);
  app.add_option("--bandwidth", flags.bandwidth, "This machine's spare bandwidth each way, for example 25Gbit");
  app.add_option("--memory", flags.memory, "Most memory for sums in progress, for example 512MiB; 0: no limit")
      ->capture_default_str();
  app.add_option("--kernel", flags.kernel, "Sum kernel: scalar, avx2 or avx512; default: the best here")
      ->envname("GLEANER_KERNEL");
  app.add_option("--metrics", flags.metrics, "Serve Prometheus metrics on HOST:PORT");
  app.add_option("--join-timeout", flags.join_timeout, "Seconds until every member must have joined")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
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
  options.kernel = flags.kernel;
  if (!flags.metrics.empty()) {
    GLN_ASSIGN_OR_RETURN(options.metrics, Address::parse(flags.metrics));
  }
  options.join_timeout = absl::Seconds(flags.join_timeout);
  options.token_file = flags.token_file;
  options.ca_file = flags.ca_file;
  GLN_ASSIGN_OR_RETURN(options.token, read_secret_file(flags.token_file));
  return options;
}

// Serves until the job ends or a signal asks to leave.
absl::Status serve(const Env& env, const ServerOptions& options) {
  const EndSignals signals;
  GLN_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::create(env, options));
  absl::Status status;
  signals.during([&] { status = server->run(); },
                 [&](int signal) {
                   server->stop(absl::CancelledError(absl::StrCat("this summer was told to stop by signal ", signal)));
                 });
  return status;
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto options = gleaner::service::to_options(flags);
  const auto level = gleaner::parse_log_level(flags.log_level);
  const absl::Status usage = options.ok() ? level.status() : options.status();
  if (!usage.ok()) {
    std::cerr << "gleaner-summer: " << usage.message() << "\n";
    return absl::IsInvalidArgument(usage) ? 2 : 1;
  }
  const gleaner::SystemEnv system({"summer", *level});
  const absl::Status status = gleaner::service::serve(system.env(), *options);
  if (status.ok()) return 0;
  std::cerr << "gleaner-summer: " << status.message() << "\n";
  return 1;
}
