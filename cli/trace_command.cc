// gleaner trace: records a running job and prints in which stages its time is spent.
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/launcher/local_jobs.h"
#include "cli/launcher/user_environment.h"
#include "cli/print.h"
#include "cli/self/own_command.h"
#include "cli/trace_capture.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/flags/groups.h"

namespace gleaner::cli {
namespace {

constexpr double kDefaultSeconds = 5;
constexpr absl::Duration kJoinWithin = absl::Seconds(20);

struct TraceFlags {
  flags::JoinFlags join = {.job = ""};  // an empty name: not given
  int64_t pid = 0;                      // 0: not given
  std::string output;
  double seconds = 0;  // 0: not given
  uint64_t steps = 0;
  bool json = false;
};

// A flag by which the user names a job and joins it, and the environment variable in its place.
struct JoinFlag {
  const char* flag;
  const char* variable;
  std::string flags::JoinFlags::*value;
};
constexpr JoinFlag kCoordinator = {"--coordinator", "GLEANER_COORDINATOR", &flags::JoinFlags::coordinator};
constexpr JoinFlag kTokenFile = {"--token-file", "GLEANER_TOKEN_FILE", &flags::JoinFlags::token_file};
constexpr JoinFlag kCaFile = {"--ca-file", "GLEANER_CA_FILE", &flags::JoinFlags::ca_file};
constexpr JoinFlag kJob = {"--job", "GLEANER_JOB", &flags::JoinFlags::job};

// Returns the name that the user has given: that of the flag or of its variable.
const char* given_name(const flags::Command& command, const JoinFlag& flag) {
  return command.has_on_command_line(flag.flag) ? flag.flag : flag.variable;
}

// Returns the flags without values of the environment, if --pid chooses a job. Processes of a job have these variables.
flags::JoinFlags without_environment(const flags::Command& command, const TraceFlags& flags) {
  flags::JoinFlags join = flags.join;
  if (flags.pid == 0) return join;
  for (const JoinFlag& flag : {kCoordinator, kTokenFile, kCaFile, kJob}) {
    if (!command.has_on_command_line(flag.flag)) (join.*flag.value).clear();
  }
  return join;
}

// Returns how to join the job of --coordinator or, without that flag, the job of `gleaner run` on this machine.
absl::StatusOr<flags::JoinFlags> find_job(const flags::Command& command, const TraceFlags& flags) {
  flags::JoinFlags join = without_environment(command, flags);
  if (!join.coordinator.empty()) {
    if (flags.pid != 0) return absl::InvalidArgumentError("give either --pid or --coordinator");
    if (join.token_file.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(given_name(command, kCoordinator), " needs --token-file"));
    }
    if (join.job.empty()) join.job = flags::JoinFlags().job;
    return join;
  }
  for (const JoinFlag& flag : {kTokenFile, kCaFile}) {
    if ((join.*flag.value).empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(given_name(command, flag), " needs --coordinator"));
  }
  const launcher::LocalJobs jobs(launcher::user_environment().runtime_folders);
  GLN_ASSIGN_OR_RETURN(const launcher::LocalJob job, launcher::choose_local_job(jobs.list(), flags.pid, join.job));
  return flags::JoinFlags{job.coordinator, job.token_file, "", job.job};
}

absl::StatusOr<member::JoinOptions> to_join_options(const flags::JoinFlags& join) {
  member::JoinOptions options;
  GLN_ASSIGN_OR_RETURN(options.coordinator, Address::parse(join.coordinator));
  GLN_ASSIGN_OR_RETURN(options.token, read_secret_file(join.token_file));
  options.token_file = join.token_file;
  options.ca_file = join.ca_file;
  options.identity.job = join.job;
  options.timeout = kJoinWithin;
  return options;
}

CaptureLimits to_limits(const TraceFlags& flags) {
  if (flags.steps > 0) return {absl::InfiniteDuration(), flags.steps};
  return {absl::Seconds(flags.seconds > 0 ? flags.seconds : kDefaultSeconds), 0};
}

absl::Status run_trace(const flags::Command& command, const TraceFlags& flags) {
  if (flags.steps > 0 && flags.seconds > 0) return absl::InvalidArgumentError("give either --seconds or --steps");
  GLN_ASSIGN_OR_RETURN(const flags::JoinFlags join, find_job(command, flags));
  GLN_ASSIGN_OR_RETURN(const member::JoinOptions options, to_join_options(join));
  GLN_ASSIGN_OR_RETURN(const EndSignals signals, EndSignals::start(own_command("trace")));
  const SystemEnv system({"trace", LogLevel::kWarning});
  GLN_ASSIGN_OR_RETURN(const auto observer, member::Observer::join(system.env(), options));
  absl::StatusOr<JobTrace> trace;
  // A signal ends the recording, and the command fetches and shows the events recorded until then.
  signals.during([&] { trace = capture(system.env(), *observer, to_limits(flags)); },
                 [&](int) { observer->interrupt(); });
  GLN_RETURN_IF_ERROR(trace.status());
  observer->close();
  GLN_ASSIGN_OR_RETURN(const std::string report, report_trace(*trace, flags.steps, flags.output, flags.json));
  return print(report);
}

}  // namespace

void add_trace(flags::Command& app, Context& context) {
  auto flags = std::make_shared<TraceFlags>();
  flags::Command command = app.add_command("trace", "Show in which stages a running job spends its time, step by step");
  flags::add_coordinator(command, flags->join);
  flags::add_proof(command, flags->join);
  flags::add_job(command, flags->join);
  command
      .add_number("--pid", flags->pid,
                  absl::StrCat("The job of this process of `", own_command("run"), "`, instead of --coordinator"))
      .between(int64_t{1}, int64_t{1} << 31);
  command.add_number("--seconds", flags->seconds, "Seconds to record [default: 5]").positive();
  command.add_number("--steps", flags->steps, "Record until this many steps are complete, instead of --seconds")
      .between(uint64_t{1}, uint64_t{1} << 32);
  command.add_text("--trace", flags->output,
                   "Write the merged trace to this file, as Chrome trace JSON for https://ui.perfetto.dev");
  command.add_old_name("--trace", "-o,--output");
  command.add_switch("--json", flags->json, "Print the report as JSON");
  command.add_footer(
      absl::StrCat("Without --coordinator it traces this user's job of `", own_command("run"),
                   "` on this machine. If there are several, it lists\nthem, and --pid or --job chooses one."));
  command.on_chosen(
      [flags, command, &context] { context.run = [flags, command] { return run_trace(command, *flags); }; });
}

}  // namespace gleaner::cli
