#include "cli/launcher/launcher.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/launcher/guard.h"
#include "cli/launcher/memory_kills.h"
#include "cli/self/own_command.h"

namespace gleaner::launcher {
namespace {

constexpr int kReadsAtOnce = 4;  // of one pipe, before other pipes and signals get their turn
constexpr absl::Duration kLookEvery = absl::Milliseconds(100);
// The time for which to read the output of a process after its end. The output of the process itself is in the pipe at
// its end, but its children may keep the pipe open for longer.
constexpr absl::Duration kDrain = absl::Milliseconds(500);
// The time in which workers that learn of a failure from the coordinator may report it and exit, before SIGTERM.
constexpr absl::Duration kLastWords = absl::Seconds(1);
// The longest time, after the first sign of a failure, in which the job finds out which process is the cause, and that
// process exits with its own message and status. Then the other processes are terminated, or, if the job is still
// undecided, once it has decided.
constexpr absl::Duration kSettle = absl::Seconds(3);

}  // namespace

Launcher::Launcher(const Env& env, const Options& options, Job* job)
    : env_(env),
      options_(options),
      job_(job),
      memory_kills_(memory_kills()),
      output_(STDOUT_FILENO),
      errors_(STDERR_FILENO) {
  const sigset_t signals = guarded_signals();
  signals_ = ::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

Launcher::~Launcher() {
  kill();
  for (Child& child : children_) {
    for (const int pipe : {child.output_pipe, child.errors_pipe}) {
      if (pipe >= 0) ::close(pipe);
    }
    if (!child.gone) child.process.reap();
  }
  ::close(signals_);
}

absl::Status Launcher::start(Kind kind, const std::string& name, const Command& command) {
  auto process = Process::spawn(command);
  if (!process.ok()) return process.status();
  const std::string prefix = options_.prefix_lines ? absl::StrCat("[", name, "] ") : "";
  children_.push_back({kind, name, command, *process, LineWriter(&output_, prefix), LineWriter(&errors_, prefix),
                       process->output(), process->errors()});
  return absl::OkStatus();
}

int Launcher::run() {
  while (!all_gone()) {
    wait_for_something();
    take_signals();
    for (Child& child : children_) pass_on_output(child);
    check_output();
    for (size_t index = 0; index < children_.size(); ++index) {
      collect(index);
      if (children_[index].restart && children_[index].gone) start_again(index);
    }
    decide();
    const bool trains = !finished_at_.has_value() && !first_failure_at_.has_value();
    if (options_.progress != nullptr && trains) options_.progress->update(now());
  }
  if (options_.progress != nullptr) options_.progress->hide();
  return exit_status();
}

bool Launcher::all_gone() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const Child& child) { return child.gone && !child.restart; });
}

bool Launcher::workers_ended() const {
  return std::all_of(children_.begin(), children_.end(), [](const Child& child) {
    return child.kind != Kind::kWorker || (child.ended_at.has_value() && !child.restart);
  });
}

bool Launcher::nobody_ended_well() const {
  return std::none_of(children_.begin(), children_.end(),
                      [](const Child& child) { return child.kind == Kind::kWorker && child.exit.well(); });
}

void Launcher::wait_for_something() {
  std::vector<pollfd> waits = {{signals_, POLLIN, 0}};
  for (const Child& child : children_) {
    for (const int pipe : {child.output_pipe, child.errors_pipe}) {
      if (pipe >= 0) waits.push_back({pipe, POLLIN, 0});
    }
  }
  ::poll(waits.data(), waits.size(), static_cast<int>(absl::ToInt64Milliseconds(kLookEvery)));
}

void Launcher::take_signals() {
  signalfd_siginfo taken{};
  while (::read(signals_, &taken, sizeof taken) == sizeof taken) {
    const auto signal = static_cast<int>(taken.ssi_signo);
    if (signal == SIGCHLD) continue;  // collect() checks all children
    if (signal == SIGHUP) {           // the parent (guard.h) or the terminal is gone
      terminate();
    } else if (++signals_taken_ > 1) {
      kill();
    } else {
      first_signal_ = signal;
      interrupted_at_ = now();
      job_->interrupt(absl::StrCat("the job was interrupted by ", describe_signal(signal)));
      // Summers do not get the signal, since workers may need a last sum before they exit.
      for (const Child& child : children_) {
        if (child.kind == Kind::kWorker && !child.gone) child.process.signal(signal);
      }
    }
  }
}

bool Launcher::drain(int& pipe, LineWriter& writer) {
  std::array<char, 64 << 10> text;
  // A process may write faster than its output can be passed on, so the reads are limited. Otherwise signals and the
  // other processes would have to wait.
  for (int reads = 0; pipe >= 0; ++reads) {
    if (reads == kReadsAtOnce) return false;
    const ssize_t got = ::read(pipe, text.data(), text.size());
    if (got < 0) return false;  // nothing to read at the moment
    if (got == 0) {
      ::close(pipe);
      pipe = -1;
    } else {
      if (options_.progress != nullptr) options_.progress->hide();
      writer.write({text.data(), static_cast<size_t>(got)}, now());
    }
  }
  return true;
}

void Launcher::show_progress(LineWriter& writer) {
  if (!writer.has_progress(now())) return;
  if (options_.progress != nullptr) options_.progress->hide();
  writer.show_progress(now());
}

bool Launcher::is_output_closed() const { return output_.error() == EPIPE || errors_.error() == EPIPE; }

void Launcher::check_output() {
  if (output_failed_ || (output_.error() == 0 && !is_output_closed())) return;
  output_failed_ = true;
  if (is_output_closed()) {
    const char* stream = output_.error() == EPIPE ? "standard output" : "standard error";
    job_->interrupt(absl::StrCat("the job was ended, since its ", stream, " was closed by its reader"));
    return job_->stop();
  }
  errors_.write(absl::StrCat(cli::own_command("run"), ": can't write standard output: ", std::strerror(output_.error()),
                             "; the job goes on, and further output of its processes is lost\n"));
}

void Launcher::pass_on_output(Child& child) {
  const bool output_done = drain(child.output_pipe, child.output), errors_done = drain(child.errors_pipe, child.errors);
  for (LineWriter* writer : {&child.output, &child.errors}) show_progress(*writer);
  if (child.gone || !child.ended_at.has_value()) return;
  if ((!output_done || !errors_done) && now() - *child.ended_at < kDrain) return;
  child.output.flush();
  child.errors.flush();
  child.process.reap();
  child.gone = true;
  for (int* pipe : {&child.output_pipe, &child.errors_pipe}) {
    if (*pipe >= 0) ::close(*pipe);
    *pipe = -1;
  }
}

void Launcher::collect(size_t index) {
  Child& child = children_[index];
  if (child.ended_at.has_value()) return;
  const std::optional<Exit> exit = child.process.exit();
  if (!exit.has_value()) return;
  child.ended_at = now();
  child.exit = *exit;
  if (child.terminated) return;
  const bool is_worker = child.kind == Kind::kWorker;
  // Once all workers have ended, or the job has an outcome, it does not matter how summers end.
  if (!is_worker && (finished_at_.has_value() || job_->outcome().has_value())) return;
  const std::string how = describe(*exit);
  const bool goes_on = is_worker ? job_->worker_ended(index, *exit, how) : job_->summer_ended(index, *exit, how);
  if (exit->well()) return;
  if (!goes_on) return failures_.push_back(index);
  if (is_worker) {
    const bool over = terminated_at_.has_value() || job_->outcome().has_value();
    child.restart = child.restarts < options_.restarts && !over;
    if (!child.restart) losses_.push_back(index);
    env_.log->warning(
        child.restart ? "a worker has ended; it is started again" : "a worker has ended; the job goes on without it",
        "worker", child.name, "how", how);
    return;
  }
  env_.log->warning("a summer has ended; the job goes on without it", "summer", child.name, "how", how);
}

// Returns a text about the end of a process. If the process was killed, the text says whether memory may have run out.
std::string Launcher::describe(const Exit& exit) const {
  std::string text = exit.describe();
  if (exit.signal != SIGKILL || !memory_kills_.has_value()) return text;
  const std::optional<uint64_t> kills = memory_kills();
  if (kills.has_value() && *kills > *memory_kills_) {
    absl::StrAppend(&text, ", probably because memory ran out: the kernel has ended ", *kills - *memory_kills_,
                    " for that meanwhile");
  }
  return text;
}

void Launcher::start_again(size_t index) {
  Child& child = children_[index];
  child.restart = false;
  if (terminated_at_.has_value()) return losses_.push_back(index);
  auto process = Process::spawn(child.command);
  if (!process.ok()) {
    env_.log->warning("a worker can't be started again", "worker", child.name, "reason", process.status().message());
    return losses_.push_back(index);
  }
  ++child.restarts;
  child.process = *process;
  child.output_pipe = process->output();
  child.errors_pipe = process->errors();
  child.ended_at.reset();
  child.exit = {};
  child.gone = false;
}

// Returns whether the launcher can end the other processes without hiding which process caused the failure.
bool Launcher::blame_is_settled() const {
  const absl::Duration waited = now() - *first_failure_at_;
  if (is_output_closed()) return true;
  if (waited >= kSettle) return !job_->is_undecided();
  const std::optional<size_t> culprit = job_->culprit();
  if (culprit.has_value()) return children_[*culprit].ended_at.has_value();
  return !failures_.empty() && job_->outcome().has_value();
}

void Launcher::decide() {
  const std::optional<absl::Status> outcome = job_->outcome();
  const bool failed = !failures_.empty() || is_output_closed() || (outcome.has_value() && !outcome->ok());
  if (failed && !first_failure_at_.has_value()) first_failure_at_ = now();
  if (first_failure_at_.has_value() && !settled_at_.has_value() && blame_is_settled()) settled_at_ = now();
  const absl::Duration last_words =
      job_->workers_learn_of_failure() && !is_output_closed() ? kLastWords : absl::ZeroDuration();
  if (settled_at_.has_value() && now() - *settled_at_ >= last_words) terminate();
  if (workers_ended() && !finished_at_.has_value()) {
    finished_at_ = now();
    job_->end();
  }
  // Ends summers that have not ended by themselves after the job.
  if (finished_at_.has_value() && !terminated_at_.has_value() && now() - *finished_at_ >= kSettle) terminate();
  for (const auto& told_at : {interrupted_at_, terminated_at_}) {
    if (told_at.has_value() && now() - *told_at >= options_.grace) kill();
  }
}

void Launcher::terminate() {
  if (terminated_at_.has_value()) return;
  terminated_at_ = now();
  for (Child& child : children_) {
    if (child.ended_at.has_value()) continue;
    child.terminated = true;
    child.process.signal(SIGTERM);
  }
}

void Launcher::kill() {
  if (std::exchange(killed_, true)) return;
  for (Child& child : children_) {
    if (!child.gone) child.process.signal(SIGKILL);
  }
}

// Returns the index of the process whose exit status run() returns.
std::optional<size_t> Launcher::failed_child() const {
  const std::optional<size_t> culprit = job_->culprit();
  if (culprit.has_value() && std::find(failures_.begin(), failures_.end(), *culprit) != failures_.end()) {
    return culprit;
  }
  // If the culprit left the job by exiting with status 0, the others failed for that reason. Which of them failed
  // first, and how, is a matter of chance, so the launcher names none of them.
  const bool left_early = culprit.has_value() && children_[*culprit].ended_at.has_value() &&
                          children_[*culprit].exit.well() && !children_[*culprit].restart;
  if (left_early) return std::nullopt;
  if (!failures_.empty()) return failures_.front();
  const std::optional<absl::Status> outcome = job_->outcome();
  const bool failed = outcome.has_value() && !outcome->ok();
  if (!is_output_closed() && !losses_.empty() && (failed || nobody_ended_well())) return losses_.front();
  return std::nullopt;
}

std::optional<Launcher::Failure> Launcher::failure() const {
  const std::optional<size_t> failed = failed_child();
  if (!failed.has_value() || first_signal_ != 0 || is_output_closed()) return std::nullopt;
  return Failure{children_[*failed].name, describe(children_[*failed].exit)};
}

int Launcher::exit_status() const {
  const std::optional<size_t> failed = failed_child();
  if (failed.has_value()) {
    const Exit& exit = children_[*failed].exit;
    // A process that catches the signal may exit with any status.
    return first_signal_ != 0 && exit.signal == 0 ? 128 + first_signal_ : exit.status;
  }
  if (is_output_closed()) return 128 + SIGPIPE;
  const std::optional<absl::Status> outcome = job_->outcome();
  return outcome.has_value() && !outcome->ok() ? 1 : 0;
}

}  // namespace gleaner::launcher
