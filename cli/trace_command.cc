// gleaner trace: where a running job's time goes.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/commands.h"
#include "cli/trace_capture.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/flags/flags.h"

namespace gleaner::cli {
namespace {

constexpr double kDefaultSeconds = 5;
constexpr absl::Duration kJoinWithin = absl::Seconds(20);

struct Flags {
  std::string coordinator, token_file, ca_file, job = "default", output;
  double seconds = 0;  // 0: not given
  uint64_t steps = 0;
  bool json = false;
};

absl::StatusOr<member::JoinOptions> to_join_options(const Flags& flags) {
  member::JoinOptions options;
  GLN_ASSIGN_OR_RETURN(options.coordinator, Address::parse(flags.coordinator));
  GLN_ASSIGN_OR_RETURN(options.token, read_secret_file(flags.token_file));
  options.token_file = flags.token_file;
  options.ca_file = flags.ca_file;
  options.job = flags.job;
  options.timeout = kJoinWithin;
  return options;
}

CaptureLimits to_limits(const Flags& flags) {
  if (flags.steps > 0) return {absl::InfiniteDuration(), flags.steps};
  return {absl::Seconds(flags.seconds > 0 ? flags.seconds : kDefaultSeconds), 0};
}

absl::Status run_trace(const Flags& flags) {
  if (flags.steps > 0 && flags.seconds > 0) return absl::InvalidArgumentError("give either --seconds or --steps");
  GLN_ASSIGN_OR_RETURN(const member::JoinOptions options, to_join_options(flags));
  const EndSignals signals;
  const SystemEnv system({"trace", LogLevel::kWarning});
  GLN_ASSIGN_OR_RETURN(const auto observer, member::Observer::join(system.env(), options));
  absl::StatusOr<JobTrace> trace;
  // A signal ends the recording; what there is then is fetched and shown.
  signals.during([&] { trace = capture(system.env(), *observer, to_limits(flags)); },
                 [&](int) { observer->interrupt(); });
  GLN_RETURN_IF_ERROR(trace.status());
  observer->close();
  GLN_ASSIGN_OR_RETURN(const std::string report, report_trace(*trace, flags.steps, flags.output, flags.json));
  return print(report);
}

}  // namespace

void add_trace(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("trace", "Where a running job's time goes, step by step");
  command->add_option("--coordinator", flags->coordinator, "The job's coordinator, HOST:PORT")
      ->required()
      ->envname("GLEANER_COORDINATOR");
  command->add_option("--token-file", flags->token_file, "File with the job's token")
      ->required()
      ->envname("GLEANER_TOKEN_FILE");
  command
      ->add_option("--ca-file", flags->ca_file,
                   "PEM file of whom the coordinator's certificate must come from; default: no TLS")
      ->envname("GLEANER_CA_FILE");
  command->add_option("--job", flags->job, "Name of the job")->capture_default_str()->envname("GLEANER_JOB");
  command->add_option("--seconds", flags->seconds, "How long to record [default: 5]")->check(CLI::PositiveNumber);
  command->add_option("--steps", flags->steps, "Instead of --seconds: until so many steps are whole")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32));
  command->add_option("--trace", flags->output,
                      "Write the merged trace to this file: Chrome trace JSON, for https://ui.perfetto.dev");
  flags::add_old_name(*command, "--trace", "-o,--output");
  command->add_flag("--json", flags->json, "The report as JSON");
  command->callback([flags, &context] {
    context.command = "trace";
    context.run = [flags] { return run_trace(*flags); };
  });
}

}  // namespace gleaner::cli
