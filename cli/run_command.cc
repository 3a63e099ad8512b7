// gleaner run: a whole job from one command: coordinator, summers and workers.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/job_coordinator.h"
#include "cli/job_flags.h"
#include "cli/launcher/guard.h"
#include "cli/launcher/hosts.h"
#include "cli/launcher/job_progress.h"
#include "cli/launcher/launcher.h"
#include "cli/launcher/progress_line.h"
#include "cli/launcher/rank_environment.h"
#include "cli/output_file.h"
#include "cli/private_directory.h"
#include "cli/token_file.h"
#include "cli/trace_capture.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/transport/choose.h"

namespace gleaner::cli {
namespace {

// Seconds. A worker that comes later waits for a commit of the others; how long is theirs, and the coordinator is here.
constexpr double kElasticOpenTimeout = 86400;
// For the launcher to say how the process of a lost rank ended, before the others are told; of one that takes longer to
// end they hear that it is lost, and no more.
constexpr absl::Duration kExitTimeout = absl::Seconds(2);

using launcher::Host;
using launcher::Hosts;
using launcher::Kind;
using launcher::Launcher;

struct Flags {
  JobFlags job;
  std::string hosts;
  std::string token_file;
  std::string transports;
  bool no_prefix = false;
  bool no_progress = false;
  double grace = 5;
  uint32_t restarts = 0;
  std::string trace;
  double trace_seconds = 5;
  std::vector<std::string> command;
};

// The coordinator's view of the job, by the order in which run_job() starts processes: ranks, then summers.
class CoordinatedJob : public launcher::Job {
 public:
  CoordinatedJob(const coordinator::Options& options, coordinator::Server* server)
      : options_(options), server_(*server) {}

  std::optional<absl::Status> outcome() const override {
    std::optional<absl::Status> outcome = server_.outcome();
    // Commands that end well without having joined are no failure.
    if (outcome.has_value() && ended_ && absl::IsCancelled(*outcome)) outcome = absl::OkStatus();
    if (outcome.has_value() && !outcome->ok() && !interruption_.empty()) outcome = absl::AbortedError(interruption_);
    return outcome;
  }
  std::optional<size_t> culprit() const override {
    const auto culprit = server_.culprit();
    if (!culprit.has_value()) return std::nullopt;
    const size_t ranks = size_t{options_.workers} * options_.local_ranks;
    if (culprit->member >= options_.workers) return ranks + culprit->member - options_.workers;
    return size_t{culprit->member} * options_.local_ranks + culprit->local_rank;
  }
  bool worker_ended(size_t index, const launcher::Exit& exit, const std::string& how) override {
    const auto worker = static_cast<uint32_t>(index / options_.local_ranks);
    const auto local_rank = static_cast<uint32_t>(index % options_.local_ranks);
    if (!options_.is_elastic()) {
      server_.rank_exited(worker, local_rank, exit.well(), how);
      return false;
    }
    if (const auto outcome = server_.outcome(); outcome.has_value()) return outcome->ok();
    if (!exit.well()) server_.worker_ended(worker, absl::UnavailableError(absl::StrCat("its process ", how)));
    return true;
  }
  bool summer_ended(size_t index, const launcher::Exit& exit, const std::string& how) override {
    const auto summer = static_cast<uint32_t>(index - size_t{options_.workers} * options_.local_ranks);
    const bool was_killed = exit.signal != 0;
    const bool can_serve = exit.well() || was_killed || options_.is_elastic() || server_.summer_has_joined(summer);
    if (can_serve) {
      server_.summer_ended(summer, absl::UnavailableError(absl::StrCat("its process ", how)));
    } else {
      server_.stop(absl::UnavailableError(absl::StrCat("summer ", summer, " ", how, " before it had joined the job")));
    }
    return can_serve;
  }
  bool workers_hear() const override { return server_.anybody_joined(); }
  void end() override {
    ended_ = true;
    server_.stop(absl::CancelledError("every worker has ended"));
  }
  void interrupt(const std::string& why) override { interruption_ = why; }
  void stop() override { server_.stop(absl::AbortedError(interruption_)); }

 private:
  const coordinator::Options options_;
  coordinator::Server& server_;
  bool ended_ = false;
  std::string interruption_;  // why its processes were told to end
};

// Beside this program, where the build and an installation put it; else wherever PATH has it.
std::string summer_program() {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::filesystem::path beside = self.parent_path() / "gleaner-summer";
  return !unknown && std::filesystem::exists(beside, unknown) ? beside.string() : "gleaner-summer";
}

std::string any_port(const Host& host) { return Address{host.address, 0}.to_string(); }

// What all workers get besides, and what the user is told of it.
std::string one_thread_each(const Flags& flags) {
  const bool on_one_machine = flags.hosts.empty();
  const auto processes = static_cast<uint32_t>(flags.job.local_ranks * (on_one_machine ? flags.job.workers : 1));
  std::string variable = launcher::one_thread(processes);
  if (!variable.empty()) {
    std::cerr << "gleaner run: " << variable << " for each process, for " << processes
              << " share a machine; set it yourself for another number of threads" << std::endl;
  }
  return variable;
}

absl::Status start_workers(const Flags& flags, const Hosts& hosts, const std::string& coordinator,
                           const std::string& token_file, Launcher& processes) {
  const bool elastic = flags.job.min_workers > 0 || flags.job.max_workers > 0;
  const double open_timeout = elastic ? kElasticOpenTimeout : flags.job.start_timeout;
  const std::string one_thread = one_thread_each(flags);
  launcher::RankEnvironment rank;
  rank.workers = static_cast<uint32_t>(flags.job.workers);
  rank.local_ranks = static_cast<uint32_t>(flags.job.local_ranks);
  rank.elastic = elastic;
  rank.master = hosts.workers.front().address;
  rank.master_port = launcher::free_port(rank.master);
  if (rank.master_port == 0) rank.master_port = launcher::free_port("0.0.0.0");  // that host is another machine
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
      for (std::string& variable : launcher::torchrun_variables(rank)) variables.push_back(std::move(variable));
      const std::string suffix = flags.job.local_ranks == 1 ? "" : absl::StrCat(".", local_rank);
      std::vector<std::string> arguments = launcher::on_host(host, variables, flags.command);
      GLN_RETURN_IF_ERROR(processes.start(Kind::kWorker, absl::StrCat("worker ", worker, suffix),
                                          {std::move(arguments), std::move(variables)}));
    }
  }
  return absl::OkStatus();
}

absl::Status start_summers(const Flags& flags, const Hosts& hosts, const std::string& coordinator,
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

void complain(const absl::Status& status) { std::cerr << "gleaner run: " << status.message() << std::endl; }

// What shells return for a command that can't be started.
int not_started(const absl::Status& status) {
  complain(status);
  if (absl::IsNotFound(status)) return 127;
  return absl::IsPermissionDenied(status) ? 126 : 1;
}

std::unique_ptr<BackgroundCapture> start_trace(const Env& env, const Flags& flags, const Address& coordinator,
                                               const std::string& token) {
  if (flags.trace.empty()) return nullptr;
  member::JoinOptions options;
  options.coordinator = coordinator;
  options.token = token;
  options.job = flags.job.job;
  return std::make_unique<BackgroundCapture>(env, options, CaptureLimits{absl::Seconds(flags.trace_seconds), 0});
}

// The table to standard error, the merged trace to the file.
absl::Status report(BackgroundCapture& capture, const std::string& file) {
  GLN_ASSIGN_OR_RETURN(const JobTrace trace, capture.finish());
  GLN_ASSIGN_OR_RETURN(const std::string text, report_trace(trace, 0, file, false));
  std::cerr << text << std::flush;
  return absl::OkStatus();
}

// What the launcher knows besides: which process failed, where the outcome does not say it, and that nobody joined.
void explain(const coordinator::Server& server, const absl::Status& outcome,
             const std::optional<Launcher::Failure>& failure) {
  if (failure.has_value() && !absl::StrContains(outcome.message(), failure->how)) {
    std::cerr << "gleaner run: " << failure->name << " " << failure->how << std::endl;
  }
  const bool in_vain = !failure.has_value() && (outcome.ok() || absl::IsDeadlineExceeded(outcome));
  if (!in_vain || server.anybody_joined()) return;
  std::cerr << "gleaner run: " << (outcome.ok() ? "warning: " : "")
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
  return {summary.steps, now.goodput_bytes_per_second, std::move(efficiency), summary.summers};
}

// Standard error as a terminal, or 0: where standard output goes through a pipe, it may come to the same terminal.
unsigned progress_columns() {
  struct stat output {};
  const bool piped = ::fstat(STDOUT_FILENO, &output) == 0 && S_ISFIFO(output.st_mode);
  return piped ? 0 : launcher::terminal_columns(STDERR_FILENO);
}

absl::StatusOr<int> run_job(const Flags& flags, const Hosts& hosts, const std::string& directory) {
  GLN_ASSIGN_OR_RETURN(const LogLevel level, parse_log_level(flags.job.log_level));
  GLN_ASSIGN_OR_RETURN(coordinator::Options options, to_options(flags.job));
  if (!options.is_elastic()) options.exit_timeout = kExitTimeout;
  const SystemEnv system({"coordinator", level});
  const Env& env = system.env();
  const std::string token_file = flags.token_file.empty() ? absl::StrCat(directory, "/token") : flags.token_file;
  GLN_ASSIGN_OR_RETURN(const std::string token, read_or_make_token_file(*env.random, token_file));
  GLN_ASSIGN_OR_RETURN(const auto coordinator,
                       JobCoordinator::start(env, flags.job, options, token, {hosts.coordinator.address, 0}));
  const std::string address = coordinator->server().address().to_string();
  const auto capture = start_trace(env, flags, coordinator->server().address(), token);
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
    absl::Status started = start_workers(flags, hosts, address, token_file, processes);
    if (started.ok()) started = start_summers(flags, hosts, address, token_file, processes);
    if (!started.ok()) return not_started(started);
    exit_status = processes.run();
    failure = processes.failure();
  }
  coordinator->server().stop(absl::CancelledError("every process has ended"));
  coordinator->server().wait().IgnoreError();  // job.outcome() has it
  const absl::Status outcome = *job.outcome();
  if (!outcome.ok()) complain(outcome);
  explain(coordinator->server(), outcome, failure);
  absl::Status reported = coordinator->report();
  if (capture != nullptr) reported.Update(report(*capture, flags.trace));
  if (!reported.ok()) {
    complain(reported);
    if (exit_status == 0) exit_status = 1;
  }
  return exit_status;
}

absl::Status run_command(const Flags& flags, Context& context) {
  // All that can be wrong with the command line, before anything is started.
  GLN_ASSIGN_OR_RETURN(const coordinator::Options options, to_options(flags.job));
  GLN_RETURN_IF_ERROR(parse_log_level(flags.job.log_level).status());
  GLN_RETURN_IF_ERROR(check_output_file("--summary", flags.job.summary));
  GLN_RETURN_IF_ERROR(check_output_file("--trace", flags.trace));
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
  GLN_ASSIGN_OR_RETURN(PrivateDirectory directory, PrivateDirectory::create());
  GLN_ASSIGN_OR_RETURN(context.exit_status, launcher::run_guarded([&] {
                         ::signal(SIGPIPE, SIG_IGN);  // output that nobody reads ends the job in order
                         const absl::StatusOr<int> status = run_job(flags, hosts, directory.path());
                         directory.remove();  // whoever guards us may be gone
                         if (status.ok()) return *status;
                         complain(status.status());
                         return absl::IsInvalidArgument(status.status()) ? 2 : 1;
                       }));
  return absl::OkStatus();
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("run", "Start a job: coordinator, summers, and, after --, COMMAND as every worker");
  add_job_flags(*command, flags->job, "warning");
  command->add_option("--hosts", flags->hosts, "JSON file: where to start what (docs/cli.md) [default: this machine]");
  command->add_option("--token-file", flags->token_file,
                      "Where the hosts find the job's token [default: a private directory of this machine]");
  command->add_option(
      "--transports", flags->transports,
      "What connections may go by: auto, or a list of shm, rdma and tcp from best to worst, of which one "
      "without tcp allows nothing else [default: GLEANER_TRANSPORTS, or auto]");
  command->add_flag("--no-prefix", flags->no_prefix, "Pass on output without \"[worker 0] \" in front of each line");
  command->add_flag("--no-progress", flags->no_progress,
                    "Don't show on standard error how far the job is and how fast it sums");
  command->add_option("--restarts", flags->restarts, "Elastic job: times that each worker that fails is started again")
      ->capture_default_str();
  command->add_option("--grace", flags->grace, "Seconds from SIGTERM to SIGKILL for what has to end")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command->add_option(
      "--trace", flags->trace,
      "Record where the first steps' time goes: a table at the end, and a trace for ui.perfetto.dev here");
  command->add_option("--trace-seconds", flags->trace_seconds, "How long to record for --trace")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("COMMAND", flags->command, "What each worker runs, with its arguments")->required();
  command->positionals_at_end();
  command->footer(
      "Example: gleaner run --workers 4 --summers 2 -- python3 train.py\n"
      "Ends with the status of the process that was the cause of a failure; docs/cli.md has all of it.");
  command->callback([flags, &context] {
    context.command = "run";
    context.run = [flags, &context] { return run_command(*flags, context); };
  });
}

}  // namespace gleaner::cli
