// Starts a job's processes, passes on their output and signals, and sees to it that all of them end.
//
// The first process that fails (or the one that the job's coordinator says it failed by) ends the others: SIGTERM, and
// SIGKILL after a grace. Signals are taken from a signalfd; guard.h has them blocked. One thread.
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
  // No worker is left.
  virtual void end() = 0;
};

struct Options {
  bool prefix_lines = true;
  absl::Duration grace = absl::Seconds(5);  // from SIGTERM to SIGKILL
};

class Launcher {
 public:
  Launcher(const Env& env, const Options& options, Job* job);
  ~Launcher();  // kills what is left

  // Errors as of Process::spawn().
  absl::Status start(Kind kind, const std::string& name, const Command& command);

  // Until every process has ended. Returns the exit status of the first that failed; 1 when none did but the job; 0.
  int run();

 private:
  struct Child {
    Kind kind;
    std::string name;
    Process process;
    LineWriter output, errors;
    int output_pipe, errors_pipe;            // -1: closed
    std::optional<absl::Duration> ended_at;  // exit seen
    int exit_status = 0;
    bool terminated = false;  // we asked it to end
    bool gone = false;        // reaped
  };

  bool all_gone() const;
  bool workers_ended() const;
  void wait_for_something();
  void take_signals();
  void pass_on_output(Child& child);
  bool drain(int& pipe, LineWriter& writer);
  void collect(size_t index);
  void decide();
  bool blame_is_settled() const;
  void terminate();
  void kill();
  int exit_status() const;
  absl::Duration now() const { return env_.clock->since_start(); }

  const Env env_;
  const Options options_;
  Job* const job_;
  int signals_ = -1;  // signalfd
  std::deque<Child> children_;
  std::vector<size_t> failures_;               // in the order they were seen
  std::optional<absl::Duration> trouble_at_;   // the first failure
  std::optional<absl::Duration> finished_at_;  // every worker has ended well
  std::optional<absl::Duration> terminated_at_;
  int signals_taken_ = 0;
  bool killed_ = false;
  bool output_closed_ = false;  // nobody reads what we pass on
};

}  // namespace gleaner::launcher
