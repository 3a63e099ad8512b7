// gleaner coordinator: one job's coordinator, for members started by hand or by another launcher.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/job_coordinator.h"
#include "cli/job_flags.h"
#include "cli/output_file.h"
#include "cli/token_file.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "operator/coordinator/server.h"

namespace gleaner::cli {
namespace {

struct Flags {
  JobFlags job;
  std::string listen;
  std::string token_file;
};

// Waits for the job's end; a signal ends it early. Returns the signal, or 0.
int wait_for_job(coordinator::Server& server, const EndSignals& signals) {
  return signals.during(
      [&] { server.wait().IgnoreError(); },  // it is in server.outcome()
      [&](int signal) {
        server.stop(absl::CancelledError(absl::StrCat("the coordinator was told to stop by signal ", signal)));
      });
}

absl::Status run_coordinator(const Flags& flags, Context& context) {
  GLN_ASSIGN_OR_RETURN(const coordinator::Options options, to_options(flags.job));
  GLN_ASSIGN_OR_RETURN(const LogLevel level, parse_log_level(flags.job.log_level));
  GLN_ASSIGN_OR_RETURN(const Address listen, Address::parse(flags.listen));
  GLN_RETURN_IF_ERROR(check_output_file("--summary", flags.job.summary));
  const EndSignals signals;
  const SystemEnv system({"coordinator", level});
  GLN_ASSIGN_OR_RETURN(const std::string token, read_or_make_token_file(*system.env().random, flags.token_file));
  GLN_ASSIGN_OR_RETURN(const auto coordinator, JobCoordinator::start(system.env(), flags.job, options, token, listen));
  std::printf("listening on %s\n", coordinator->server().address().to_string().c_str());
  std::fflush(stdout);
  const int signal = wait_for_job(coordinator->server(), signals);
  if (signal != 0) context.exit_status = 128 + signal;
  const absl::Status outcome = *coordinator->server().outcome();
  const absl::Status reported = coordinator->report();
  if (signal != 0) return absl::OkStatus();
  return outcome.ok() ? reported : absl::UnavailableError(outcome.message());
}

}  // namespace

void add_coordinator(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("coordinator", "Coordinate one job: who is in, who sums what");
  command->add_option("--listen", flags->listen, "HOST:PORT; port 0: any free one")->required();
  command
      ->add_option("--token-file", flags->token_file,
                   "File with the job's token, for all members; made if it is not there")
      ->required();
  add_job_flags(*command, flags->job, "info");
  command->callback([flags, &context] {
    context.command = "coordinator";
    context.run = [flags, &context] { return run_coordinator(*flags, context); };
  });
}

}  // namespace gleaner::cli
