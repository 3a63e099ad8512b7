// Starts a job's processes, passes on their output and signals, and sees to it that all of them end.
//
// The first process that fails (or the one that the job's coordinator says it failed by) ends the others: SIGTERM, and
// SIGKILL after a grace. The job is told how each worker's process ended, so that its members hear the true cause.
// When a signal was passed on, that signal is why the job fails, not the process that it ended first. Standard output
// that can't be written (a full disk) does not end the job: that is said once, and what the processes write there is
// dropped. One that nobody reads any more (`| head`) ends the job. Summers that end while the job goes on without them
// are no failure; nor are workers, if the job can do without. Signals are taken from a signalfd; guard.h has them
// blocked. One thread.
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

// What the processes do together, as somebody else (the coordinator) sees it.
class Job {
 public:
  virtual ~Job() = default;
  // None while it goes on.
  virtual std::optional<absl::Status> outcome() const = 0;
  // Which process it failed by: an index in order of start(), as far as one is known.
  virtual std::optional<size_t> culprit() const = 0;
  // The process of a summer has ended, `how` it did. Of one that ended in error: whether the job goes on without it.
  virtual bool summer_ended(size_t index, const Exit& exit, const std::string& how) = 0;
  // The process of a worker has ended, `how` it did: "exited with status 3". Of one that ended in error: whether the
  // job goes on without it, or has ended well already.
  virtual bool worker_ended(size_t index, const Exit& exit, const std::string& how) = 0;
  // Whether workers hear of a failure without being told by a signal.
  virtual bool workers_hear() const = 0;
  // No worker is left.
  virtual void end() = 0;
  // The processes were told to end, `why` says by what: that is why the job fails, if it does from here on.
  virtual void interrupt(const std::string& why) = 0;
  // Ends the job, which has been interrupted, without waiting for its processes.
  virtual void stop() = 0;
};

struct Options {
  bool prefix_lines = true;
  absl::Duration grace = absl::Seconds(5);  // from SIGTERM to SIGKILL
  uint32_t restarts = 0;                    // of each worker that the job could go on without
  ProgressLine* progress = nullptr;         // kept up to date while workers run, where there is one
};

class Launcher {
 public:
  Launcher(const Env& env, const Options& options, Job* job);
  ~Launcher();  // kills what is left

  // Errors as of Process::spawn().
  absl::Status start(Kind kind, const std::string& name, const Command& command);

  // Until every process has ended. Returns the exit status of the first that failed; 1 when none did but the job; 0.
  int run();
  // Of the process whose exit status run() returned; none when no process failed, or all were told to end.
  struct Failure {
    std::string name;  // "worker 1"
    std::string how;   // "was killed by signal 9 (SIGKILL)"
  };
  std::optional<Failure> failure() const;

 private:
  struct Child {
    Kind kind;
    std::string name;
    Command command;
    Process process;
    LineWriter output, errors;
    int output_pipe, errors_pipe;            // -1: closed
    std::optional<absl::Duration> ended_at;  // exit seen
    Exit exit;
    bool terminated = false;  // we asked it to end
    bool gone = false;        // reaped
    uint32_t restarts = 0;
    bool restart = false;  // to be started again once it is gone
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
  const std::optional<uint64_t> memory_kills_;  // before any process was started
  int signals_ = -1;                            // signalfd
  std::deque<Child> children_;
  std::vector<size_t> failures_;               // in the order they were seen
  std::vector<size_t> losses_;                 // workers that the job goes on without, in that order
  std::optional<absl::Duration> trouble_at_;   // the first failure
  std::optional<absl::Duration> settled_at_;   // it is known who was the cause
  std::optional<absl::Duration> finished_at_;  // every worker has ended well
  std::optional<absl::Duration> terminated_at_;
  OutputStream output_, errors_;
  bool output_failed_ = false;  // and that was said
  int signals_taken_ = 0;
  int first_signal_ = 0;  // that was passed on
  bool killed_ = false;
};

}  // namespace gleaner::launcher
