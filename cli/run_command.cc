// gleaner run: starts a whole job: coordinator, summers and workers.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/coordinated_job.h"
#include "cli/fleet_flags.h"
#include "cli/job_coordinator.h"
#include "cli/job_flags.h"
#include "cli/job_network.h"
#include "cli/launcher/guard.h"
#include "cli/launcher/hosts.h"
#include "cli/launcher/job_progress.h"
#include "cli/launcher/launcher.h"
#include "cli/launcher/local_jobs.h"
#include "cli/launcher/progress_line.h"
#include "cli/launcher/rank_environment.h"
#include "cli/launcher/user_environment.h"
#include "cli/memory_file.h"
#include "cli/output_file.h"
#include "cli/self/own_command.h"
#include "cli/self/own_program.h"
#include "cli/token_file.h"
#include "cli/trace_capture.h"
#include "common/base/env.h"
#include "common/base/exit_timer.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/transport/choose.h"

namespace gleaner::cli {
namespace {

// Seconds that a worker of an elastic job waits to join; in effect no limit. A worker that joins a running job waits
// until the other workers commit, and their script decides when they do. No shorter limit is needed to notice a lost
// coordinator, because the coordinator runs in this process.
constexpr double kElasticOpenTimeout = 86400;
// Time that the launcher has to report how the process of a lost rank ended before the coordinator tells the other
// ranks. If the process takes longer to end, they learn only that the rank is lost.
constexpr absl::Duration kExitTimeout = absl::Seconds(2);
// Time from --grace, when every process of the job is killed, until the launcher must have ended after a signal.
constexpr absl::Duration kEndTimeout = absl::Milliseconds(800);

using launcher::Host;
using launcher::Hosts;
using launcher::Kind;
using launcher::Launcher;
using launcher::LocalJobs;

struct RunFlags {
  JobFlags job;
  std::string hosts;
  std::string token_file;
  std::string transports;
  bool no_prefix = false;
  bool no_progress = false;
  double grace = 4;
  uint32_t restarts = 0;
  std::string trace;
  double trace_seconds = 5;
  std::vector<std::string> command;
};

// Returns the path of gleaner-summer in the directory of this program, where builds and installations put it, or else
// its name, which is looked up in PATH.
std::string summer_program() {
  const absl::StatusOr<std::filesystem::path> own = own_program();
  if (!own.ok()) return "gleaner-summer";
  const std::filesystem::path beside = own->parent_path() / "gleaner-summer";
  std::error_code unknown;
  return std::filesystem::exists(beside, unknown) ? beside.string() : "gleaner-summer";
}

std::string any_port(const Host& host) { return Address{host.address, 0}.to_string(); }

// Returns "OMP_NUM_THREADS=1" if the workers should have it (launcher::one_thread()), and tells the user.
std::string one_thread_each(const RunFlags& flags, const launcher::UserEnvironment& user) {
  const bool on_one_machine = flags.hosts.empty();
  const auto processes = static_cast<uint32_t>(flags.job.local_ranks * (on_one_machine ? flags.job.workers : 1));
  std::string variable = launcher::one_thread(processes, user);
  if (!variable.empty()) {
    std::cerr << own_command("run") << ": " << variable << " for each process, since " << processes
              << " share a machine; set it yourself for another number of threads" << std::endl;
  }
  return variable;
}

absl::Status start_workers(const RunFlags& flags, const Hosts& hosts, const std::string& coordinator,
                           const std::string& token_file, const launcher::UserEnvironment& user, Launcher& processes) {
  const bool elastic = flags.job.min_workers > 0 || flags.job.max_workers > 0;
  const double open_timeout = elastic ? kElasticOpenTimeout : flags.job.start_timeout;
  const std::string one_thread = one_thread_each(flags, user);
  launcher::RankEnvironment rank;
  rank.workers = static_cast<uint32_t>(flags.job.workers);
  rank.local_ranks = static_cast<uint32_t>(flags.job.local_ranks);
  rank.elastic = elastic;
  rank.master = hosts.workers.front().address;
  rank.master_port = launcher::free_port(rank.master);
  // If the first worker's host is another machine, its free ports are unknown, so this takes a port that is free on
  // this machine.
  if (rank.master_port == 0) rank.master_port = launcher::free_port("0.0.0.0");
  for (int64_t worker = 0; worker < flags.job.workers; ++worker) {
    for (int64_t local_rank = 0; local_rank < flags.job.local_ranks; ++local_rank) {
      const Host& host = hosts.workers[static_cast<size_t>(worker)];
      std::vector<std::string> variables = {absl::StrCat("GLEANER_COORDINATOR=", coordinator),
                                            absl::StrCat("GLEANER_WORKER=", worker),
                                            absl::StrCat("GLEANER_ADDRESS=", any_port(host)),
                                            absl::StrCat("GLEANER_TOKEN_FILE=", token_file),
                                            absl::StrCat("GLEANER_JOB=", flags.job.job),
                                            absl::StrCat("GLEANER_LOCAL_RANK=", local_rank),
                                            absl::StrCat("GLEANER_LOCAL_SIZE=", flags.job.local_ranks),
                                            absl::StrCat("GLEANER_OPEN_TIMEOUT=", open_timeout)};
      if (!flags.transports.empty()) variables.push_back(absl::StrCat("GLEANER_TRANSPORTS=", flags.transports));
      if (!one_thread.empty()) variables.push_back(one_thread);
      rank.worker = static_cast<uint32_t>(worker);
      rank.local_rank = static_cast<uint32_t>(local_rank);
      for (std::string& variable : launcher::torchrun_variables(rank, user)) variables.push_back(std::move(variable));
      const std::string suffix = flags.job.local_ranks == 1 ? "" : absl::StrCat(".", local_rank);
      std::vector<std::string> arguments = launcher::on_host(host, variables, flags.command);
      GLN_RETURN_IF_ERROR(processes.start(Kind::kWorker, absl::StrCat("worker ", worker, suffix),
                                          {std::move(arguments), std::move(variables)}));
    }
  }
  return absl::OkStatus();
}

absl::Status start_summers(const RunFlags& flags, const Hosts& hosts, const std::string& coordinator,
                           const std::string& token_file, Launcher& processes) {
  const std::string program = flags.job.summers > 0 ? summer_program() : "";
  for (int64_t summer = 0; summer < flags.job.summers; ++summer) {
    const Host& host = hosts.summers[static_cast<size_t>(summer)];
    std::vector<std::string> arguments = {program,
                                          "--coordinator",
                                          coordinator,
                                          "--listen",
                                          any_port(host),
                                          "--token-file",
                                          token_file,
                                          "--job",
                                          flags.job.job,
                                          "--index",
                                          absl::StrCat(summer),
                                          "--start-timeout",
                                          absl::StrCat(flags.job.start_timeout),
                                          "--log-level",
                                          flags.job.log_level};
    if (!flags.transports.empty()) arguments.insert(arguments.end(), {"--transports", flags.transports});
    GLN_RETURN_IF_ERROR(
        processes.start(Kind::kSummer, absl::StrCat("summer ", summer), {launcher::on_host(host, {}, arguments), {}}));
  }
  return absl::OkStatus();
}

void complain(const absl::Status& status) { std::cerr << own_command("run") << ": " << status.message() << std::endl; }

// Returns the exit status that a shell has for a command that can't be started.
int not_started(const absl::Status& status) {
  complain(status);
  if (absl::IsNotFound(status)) return 127;
  return absl::IsPermissionDenied(status) ? 126 : 1;
}

std::unique_ptr<BackgroundCapture> start_trace(const Env& env, const RunFlags& flags, const Address& coordinator,
                                               const std::string& token) {
  if (flags.trace.empty()) return nullptr;
  member::JoinOptions options;
  options.coordinator = coordinator;
  options.token = token;
  options.identity.job = flags.job.job;
  return std::make_unique<BackgroundCapture>(env, options, CaptureLimits{absl::Seconds(flags.trace_seconds), 0});
}

// Writes the table to standard error and the merged trace to `file`.
absl::Status report(BackgroundCapture& capture, const std::string& file) {
  GLN_ASSIGN_OR_RETURN(const JobTrace trace, capture.finish());
  GLN_ASSIGN_OR_RETURN(const std::string text, report_trace(trace, 0, file, false));
  std::cerr << text << std::flush;
  return absl::OkStatus();
}

// Tells the user facts that the outcome does not include: which process failed and how, or that no process joined the
// job.
void explain(const coordinator::Server& server, const absl::Status& outcome,
             const std::optional<Launcher::Failure>& failure) {
  if (failure.has_value() && !absl::StrContains(outcome.message(), failure->how)) {
    std::cerr << own_command("run") << ": " << failure->name << " " << failure->how << std::endl;
  }
  const bool in_vain = !failure.has_value() && (outcome.ok() || absl::IsDeadlineExceeded(outcome));
  if (!in_vain || server.any_rank_joined()) return;
  std::cerr << own_command("run") << ": " << (outcome.ok() ? "warning: " : "")
            << "no process joined the job, so nothing was summed: does COMMAND call gleaner.init(), or "
               "gleaner.torch.init()?"
            << std::endl;
}

launcher::JobCounts counts_of(const coordinator::Summary& summary) {
  const coordinator::Figures& now = summary.window;
  std::string efficiency;
  if (now.basis == coordinator::Basis::kBandwidth || now.basis == coordinator::Basis::kLatency) {
    efficiency = coordinator::efficiency_text(now.basis, now.efficiency);
    if (now.basis == coordinator::Basis::kBandwidth) efficiency += " of its bound";
  }
  return {summary.whole.steps, now.goodput_bytes_per_second, std::move(efficiency), summary.summers};
}

// Returns the width of the terminal on standard error, or 0 for no progress line that is kept up to date. That includes
// the case that standard output is a pipe, since its reader may write to the same terminal.
unsigned progress_columns() {
  struct stat output {};
  const bool piped = ::fstat(STDOUT_FILENO, &output) == 0 && S_ISFIFO(output.st_mode);
  return piped ? 0 : launcher::terminal_columns(STDERR_FILENO);
}

// The job's token, and the path at which the job's processes read it.
struct Token {
  std::string text;
  std::string path;
  std::optional<MemoryFile> file;  // none with --token-file
};

absl::StatusOr<Token> make_or_read_token(const Env& env, const std::string& token_file) {
  Token token;
  if (token_file.empty()) {
    GLN_ASSIGN_OR_RETURN(token.text, make_token(*env.random));
    GLN_ASSIGN_OR_RETURN(token.file, MemoryFile::create("gleaner-token", token.text));
    token.path = token.file->path();
  } else {
    GLN_ASSIGN_OR_RETURN(token.text, read_or_make_token_file(*env.random, token_file));
    token.path = token_file;
  }
  return token;
}

// Checks that there are enough descriptors for the connections and the output of all processes. gRPC would not report
// that it can't accept a connection.
absl::Status check_descriptors_of(const RunFlags& flags) {
  constexpr int64_t kOfAProcess = 4;  // its connection, the pipes of its output, and some of the next one's start
  constexpr int64_t kOfTheLauncher = 24;
  const int64_t processes = flags.job.workers * flags.job.local_ranks + flags.job.summers;
  return check_descriptors(static_cast<size_t>(kOfTheLauncher + kOfAProcess * processes), "this job's launcher");
}

// Lets other commands of this user find the job, and tells the user how to trace it. The job does without, if this user
// has no folder for it. `pid`: of the process that the user started.
void announce(const Env& env, const RunFlags& flags, const LocalJobs& local_jobs, int64_t pid,
              const std::string& coordinator, const std::string& token_file) {
  const auto process = launcher::identify(pid);
  absl::Status added = process.status();
  if (process.ok()) {
    std::error_code unknown;
    added =
        local_jobs.add({*process, flags.job.job, coordinator, std::filesystem::absolute(token_file, unknown).string(),
                        static_cast<uint32_t>(flags.job.workers), static_cast<uint32_t>(flags.job.summers),
                        env.clock->now(), flags.command});
  }
  if (!added.ok()) {
    env.log->info("other commands can't find this job", "reason", added.message());
  } else if (!flags.no_progress) {
    std::cerr << own_command("run") << ": to see where the time of a step goes: " << own_command("trace --pid ") << pid
              << std::endl;
  }
}

absl::StatusOr<int> run_job(const RunFlags& flags, const Hosts& hosts, const launcher::UserEnvironment& user,
                            const LocalJobs& local_jobs, int64_t pid) {
  GLN_RETURN_IF_ERROR(check_descriptors_of(flags));
  GLN_ASSIGN_OR_RETURN(const LogLevel level, parse_log_level(flags.job.log_level));
  GLN_ASSIGN_OR_RETURN(coordinator::Options options, to_options(flags.job));
  if (!options.is_elastic()) options.launcher.exit_timeout = kExitTimeout;
  options.launcher.has_hosts_file = !flags.hosts.empty();
  const SystemEnv system({"coordinator", level});
  const Env& env = system.env();
  GLN_RETURN_IF_ERROR(find_rank_maps(env, options));
  GLN_ASSIGN_OR_RETURN(const Token token, make_or_read_token(env, flags.token_file));
  GLN_ASSIGN_OR_RETURN(const auto coordinator,
                       JobCoordinator::start(env, flags.job, options, token.text, {hosts.coordinator.address, 0}));
  const std::string address = coordinator->server().address().to_string();
  announce(env, flags, local_jobs, pid, address, token.path);
  const std::string warning = launcher::warn_of_loopback(hosts, coordinator->server().address());
  if (!warning.empty()) std::cerr << own_command("run") << ": warning: " << warning << std::endl;
  const auto capture = start_trace(env, flags, coordinator->server().address(), token.text);
  CoordinatedJob job(options, &coordinator->server());
  launcher::JobProgress progress(flags.job.job);
  launcher::ProgressLine line(STDERR_FILENO, progress_columns(), [&](absl::Duration now) {
    return progress.line(counts_of(coordinator->server().summary()), now);
  });
  int exit_status = 0;
  std::optional<Launcher::Failure> failure;
  {
    Launcher processes(
        env, {!flags.no_prefix, absl::Seconds(flags.grace), flags.restarts, flags.no_progress ? nullptr : &line}, &job);
    absl::Status started = start_workers(flags, hosts, address, token.path, user, processes);
    if (started.ok()) started = start_summers(flags, hosts, address, token.path, processes);
    if (!started.ok()) {
      exit_status = not_started(started);
      exit_after(kShutdownTimeout, exit_status, "");
      return exit_status;
    }
    exit_status = processes.run();
    failure = processes.failure();
  }
  coordinator->server().stop(absl::CancelledError("every process has ended"));
  coordinator->server().wait().IgnoreError();  // job.outcome() has the error
  const absl::Status outcome = *job.outcome();
  if (!outcome.ok()) complain(outcome);
  explain(coordinator->server(), outcome, failure);
  absl::Status reported = coordinator->report();
  if (capture != nullptr) reported.Update(report(*capture, flags.trace));
  if (!reported.ok()) {
    complain(reported);
    if (exit_status == 0) exit_status = 1;
  }
  exit_after(kShutdownTimeout, exit_status, "");
  return exit_status;
}

absl::Status run_command(const RunFlags& flags, Context& context) {
  // Checks the whole command line before any process is started.
  GLN_ASSIGN_OR_RETURN(const coordinator::Options options, to_options(flags.job));
  GLN_RETURN_IF_ERROR(parse_log_level(flags.job.log_level).status());
  GLN_RETURN_IF_ERROR(check_writable("--summary", flags.job.summary));
  GLN_RETURN_IF_ERROR(check_writable("--trace", flags.trace));
  if (const auto transports = transport::parse_preferences(flags.transports); !transports.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--transports ", transports.status().message()));
  }
  if (flags.restarts > 0 && !options.is_elastic()) {
    return absl::InvalidArgumentError("--restarts is for elastic jobs: give --min-workers, too");
  }
  Hosts hosts = launcher::this_machine(options.workers, options.summers);
  if (!flags.hosts.empty()) {
    GLN_ASSIGN_OR_RETURN(hosts, launcher::read_hosts(flags.hosts, options.workers, options.summers));
  }
  const launcher::GuardOptions guard = {own_command("run"), absl::Seconds(flags.grace) + kEndTimeout};
  const launcher::UserEnvironment user = launcher::user_environment();
  const LocalJobs local_jobs(user.runtime_folders);
  const int64_t pid = ::getpid();
  GLN_ASSIGN_OR_RETURN(context.exit_status, launcher::run_guarded(guard, [&] {
                         ::signal(SIGPIPE, SIG_IGN);  // the Launcher handles output whose reader closed it
                         report_lack_of_memory(own_command("run"));
                         const absl::StatusOr<int> status = run_job(flags, hosts, user, local_jobs, pid);
                         local_jobs.remove(pid);  // in case the guard was killed
                         if (status.ok()) return *status;
                         complain(status.status());
                         return absl::IsInvalidArgument(status.status()) ? 2 : 1;
                       }));
  local_jobs.remove(pid);  // in case the child was killed
  return absl::OkStatus();
}

}  // namespace

void add_run(flags::Command& app, Context& context) {
  auto flags = std::make_shared<RunFlags>();
  flags::Command command =
      app.add_command("run", "Start a job: coordinator, summers, and, after --, COMMAND as every worker");
  add_job_flags(command, flags->job, "warning");
  command.add_text("--hosts", flags->hosts,
                   "JSON file with the hosts of the processes (docs/cli.md) [default: this machine]");
  command.add_text("--token-file", flags->token_file,
                   absl::StrCat("Path of the job's token on the hosts [default: memory of `", own_command("run"),
                                "`, on this machine only]"));
  add_transports_flag(command, flags->transports);
  command.add_switch("--no-prefix", flags->no_prefix, "Pass on output without \"[worker 0] \" in front of each line");
  command.add_switch("--no-progress", flags->no_progress,
                     "Don't show on standard error how to trace the job, nor its progress and speed");
  command
      .add_number("--restarts", flags->restarts, "Elastic job: number of times that a failed worker is started again")
      .show_default();
  command
      .add_number("--grace", flags->grace,
                  "Seconds from SIGTERM, Ctrl-C or a failure to SIGKILL for processes that have to end")
      .between(0.0, 1e6)
      .show_default();
  command.add_text("--trace", flags->trace,
                   "Record the first steps: print a table of their time at the end, and write a trace for "
                   "ui.perfetto.dev to this file");
  command.add_number("--trace-seconds", flags->trace_seconds, "Seconds to record for --trace")
      .positive()
      .show_default();
  command.add_texts("COMMAND", flags->command, "The program that each worker runs, with its arguments").required();
  command.end_flags_at_first_positional();
  command.add_footer(
      absl::StrCat("Example: ", own_command("run"), " --workers 4 --summers 2 -- python3 train.py\n",
                   "The exit status is that of the process that made the job fail; docs/cli.md has the details."));
  command.on_chosen([flags, &context] { context.run = [flags, &context] { return run_command(*flags, context); }; });
}

}  // namespace gleaner::cli
