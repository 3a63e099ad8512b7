// gleaner coordinator: runs the coordinator of one job whose members are started by hand or by another launcher.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/invited_summers.h"
#include "cli/job_coordinator.h"
#include "cli/job_flags.h"
#include "cli/job_network.h"
#include "cli/output_file.h"
#include "cli/self/own_command.h"
#include "cli/token_file.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/exit_timer.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "coordinator/service/server.h"

namespace gleaner::cli {
namespace {

struct CoordinatorFlags {
  JobFlags job;
  std::string listen;
  std::string token_file;
  InviteFlags invite;
};

// Waits until the job has ended. A signal ends the job. Returns the signal, or 0.
int wait_for_job(coordinator::Server& server, const EndSignals& signals) {
  return signals.during(
      [&] { server.wait().IgnoreError(); },  // the caller reads server.outcome()
      [&](int signal) {
        server.stop(absl::CancelledError(absl::StrCat("the coordinator was stopped by signal ", signal)));
      });
}

absl::Status run_coordinator(const CoordinatorFlags& flags, Context& context) {
  GLN_ASSIGN_OR_RETURN(const InvitedSummers invited, to_invited_summers(flags.invite));
  GLN_ASSIGN_OR_RETURN(coordinator::Options options, to_options(flags.job));
  const uint32_t summers = options.summers;
  options.summers += static_cast<uint32_t>(invited.addresses.size());
  GLN_ASSIGN_OR_RETURN(const LogLevel level, parse_log_level(flags.job.log_level));
  GLN_ASSIGN_OR_RETURN(const Address listen, Address::parse(flags.listen));
  GLN_RETURN_IF_ERROR(check_writable("--summary", flags.job.summary));
  report_lack_of_memory(own_command("coordinator"));
  GLN_ASSIGN_OR_RETURN(const EndSignals signals, EndSignals::start(own_command("coordinator"), kSignalTimeout));
  const SystemEnv system({"coordinator", level});
  GLN_RETURN_IF_ERROR(find_rank_maps(system.env(), options));
  GLN_ASSIGN_OR_RETURN(const std::string token, read_or_make_token_file(flags.token_file, [&] {
                         return make_token_for(invited, *system.env().random);
                       }));
  GLN_ASSIGN_OR_RETURN(const auto coordinator, JobCoordinator::start(system.env(), flags.job, options, token, listen));
  GLN_ASSIGN_OR_RETURN(auto inviter,
                       invite(system.env(), invited, options.job, summers, token, &coordinator->server()));
  std::printf("listening on %s\n", coordinator->server().address().to_string().c_str());
  std::fflush(stdout);
  const int signal = wait_for_job(coordinator->server(), signals);
  inviter.reset();
  if (signal != 0) context.exit_status = 128 + signal;
  const absl::Status outcome = *coordinator->server().outcome();
  const absl::Status reported = coordinator->report();
  if (signal != 0) return absl::OkStatus();
  absl::Status result = outcome.ok() ? reported : absl::UnavailableError(outcome.message());
  exit_after(kShutdownTimeout, result.ok() ? 0 : 1, result.message());
  return result;
}

}  // namespace

void add_coordinator(flags::Command& app, Context& context) {
  auto flags = std::make_shared<CoordinatorFlags>();
  flags::Command command = app.add_command("coordinator", "Coordinate one job: its members, tensors and plans");
  command.add_text("--listen", flags->listen, "HOST:PORT to listen on; port 0: any free port").required().address();
  command
      .add_text("--token-file", flags->token_file,
                "File with the job's token, for all members; made if it does not exist or is empty")
      .required();
  add_invite_flags(command, flags->invite);
  add_job_flags(command, flags->job, "info");
  command.on_chosen(
      [flags, &context] { context.run = [flags, &context] { return run_coordinator(*flags, context); }; });
}

}  // namespace gleaner::cli
