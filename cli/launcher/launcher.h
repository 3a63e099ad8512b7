// Launcher starts the processes of a job, passes on their output and signals, and ensures that all of them end.
//
// - Failure: if a process fails, the launcher sends SIGTERM to all others, and SIGKILL after a grace period. The cause
//   of the failure is the process that the job's coordinator names (Job::culprit()), or else the first that failed. The
//   launcher tells the Job how each process ended, so that members learn the true cause.
// - Losses: a summer or worker that ends while the job continues without it is not a failure.
// - Signals: the launcher passes the first SIGINT or SIGTERM on to the workers. That signal then is the cause of the
//   job's failure, whichever process it ends first. A second one, or the end of the grace period, kills all processes.
//   SIGHUP terminates all processes.
// - Output: if standard output can't be written (a full disk), the launcher reports this once, drops further output,
//   and the job continues. If the reader of standard output has closed it (`| head`), the job ends.
//
// The launcher receives signals from a signalfd, so they must be blocked (guard.h). It uses one thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/launcher/line_writer.h"
#include "cli/launcher/process.h"
#include "cli/launcher/progress_line.h"
#include "common/base/env.h"

namespace gleaner::launcher {

enum class Kind { kWorker, kSummer };

// The job that the processes run together, as its coordinator sees it. An index counts processes in the order of
// Launcher::start().
class Job {
 public:
  virtual ~Job() = default;
  // Returns nothing while the job runs.
  virtual std::optional<absl::Status> outcome() const = 0;
  // Returns the index of the process that made the job fail, if it is known.
  virtual std::optional<size_t> culprit() const = 0;
  // Returns whether the job fails, and the coordinator still waits to learn which process is the cause. That ends
  // after a time that the coordinator limits (coordinator/failures/outcome.h).
  virtual bool is_undecided() const = 0;
  // Called when the process of a summer has ended. `how`: "exited with status 3". If the process ended with an error,
  // returns whether the job continues without it.
  virtual bool summer_ended(size_t index, const Exit& exit, const std::string& how) = 0;
  // Called when the process of a worker has ended. `how`: "exited with status 3". If the process ended with an error,
  // returns whether the job continues without it or has already ended well.
  virtual bool worker_ended(size_t index, const Exit& exit, const std::string& how) = 0;
  // Returns whether workers learn of a failure from the coordinator, without a signal.
  virtual bool workers_learn_of_failure() const = 0;
  // Called when all workers have ended.
  virtual void end() = 0;
  // Called when the launcher tells the processes to end. If the job fails afterwards, `why` is the reason.
  virtual void interrupt(const std::string& why) = 0;
  // Ends a job that was interrupted, without waiting for its processes.
  virtual void stop() = 0;
};

struct Options {
  bool prefix_lines = true;
  absl::Duration grace = absl::Seconds(4);  // from SIGTERM, or a signal that is passed on, to SIGKILL
  uint32_t restarts = 0;                    // times that each worker is restarted if the job can continue without it
  ProgressLine* progress = nullptr;         // updated while workers run; may be null
};

class Launcher {
 public:
  Launcher(const Env& env, const Options& options, Job* job);
  ~Launcher();  // kills all processes that still run

  // Starts a process. Errors are those of Process::spawn().
  absl::Status start(Kind kind, const std::string& name, const Command& command);

  // Runs until every process has ended. Returns the exit status of the process that made the job fail. If the launcher
  // had passed on a signal and that process exited by itself, returns 128 + the signal instead. If no process failed,
  // returns 128 + SIGPIPE if the output's reader closed it, 1 if the job failed, and otherwise 0.
  int run();
  // Describes the process that made the job fail.
  struct Failure {
    std::string name;  // "worker 1"
    std::string how;   // "was killed by signal 9 (SIGKILL)"
  };
  // Returns nothing if no process failed, or if the job was interrupted.
  std::optional<Failure> failure() const;

 private:
  struct Child {
    Kind kind;
    std::string name;
    Command command;
    Process process;
    LineWriter output, errors;
    int output_pipe, errors_pipe;            // -1: closed
    std::optional<absl::Duration> ended_at;  // when the launcher noticed the exit
    Exit exit;
    bool terminated = false;  // the launcher has sent SIGTERM to the process
    bool gone = false;        // reaped
    uint32_t restarts = 0;
    bool restart = false;  // the process is started again once it is gone
  };

  bool all_gone() const;
  bool workers_ended() const;
  bool nobody_ended_well() const;
  void wait_for_something();
  void take_signals();
  void pass_on_output(Child& child);
  bool drain(int& pipe, LineWriter& writer);
  void show_progress(LineWriter& writer);
  void check_output();
  bool is_output_closed() const;
  void collect(size_t index);
  void start_again(size_t index);
  void decide();
  bool blame_is_settled() const;
  void terminate();
  void kill();
  int exit_status() const;
  std::optional<size_t> failed_child() const;
  std::string describe(const Exit& exit) const;
  absl::Duration now() const { return env_.clock->since_start(); }

  const Env env_;
  const Options options_;
  Job* const job_;
  const std::optional<uint64_t> memory_kills_;  // memory_kills() before any process was started
  int signals_ = -1;                            // signalfd
  std::deque<Child> children_;
  std::vector<size_t> failures_;                    // indices of processes that failed, in the order of their exits
  std::vector<size_t> losses_;                      // indices of workers that the job continues without, in that order
  std::optional<absl::Duration> first_failure_at_;  // when the first failure was seen
  std::optional<absl::Duration> settled_at_;        // when the cause of the failure became known
  std::optional<absl::Duration> finished_at_;       // when the last worker ended
  std::optional<absl::Duration> interrupted_at_;    // when a signal was passed on to the workers
  std::optional<absl::Duration> terminated_at_;
  OutputStream output_, errors_;
  bool output_failed_ = false;  // the launcher has handled the failure to write
  int signals_taken_ = 0;
  int first_signal_ = 0;  // the signal that was passed on; 0: none
  bool killed_ = false;
};

}  // namespace gleaner::launcher
