// Records a trace of a running job through its coordinator, and writes it as a file and as a report.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/timeline/job_trace.h"
#include "common/base/env.h"
#include "common/member/observer.h"

namespace gleaner::cli {

struct CaptureLimits {
  absl::Duration duration = absl::InfiniteDuration();
  // 0: no limit. Otherwise the capture has at least this many complete steps, and usually more, because members report
  // their steps with a delay of up to some seconds.
  uint64_t steps = 0;
};

// Records until a limit is reached, the job ends, or observer.interrupt() is called, and then fetches every member's
// recording. For a member that does not answer, RankTrace::missing has the reason. Errors: Cancelled if interrupted
// before the job began.
absl::StatusOr<JobTrace> capture(const Env& env, member::Observer& observer, const CaptureLimits& limits);

// Returns the report on the first `most_steps` steps of the trace (0: on all steps), as JSON or text. Also writes the
// merged trace to `file`, unless `file` is empty.
absl::StatusOr<std::string> report_trace(const JobTrace& trace, size_t most_steps, const std::string& file, bool json);

// Runs capture() on a thread of its own ("gln-trace"), so that the process that runs the job can trace it.
class BackgroundCapture {
 public:
  BackgroundCapture(const Env& env, member::JoinOptions options, const CaptureLimits& limits);
  ~BackgroundCapture();
  // Ends the recording if it still runs, and returns the trace.
  absl::StatusOr<JobTrace> finish();

 private:
  const Env env_;
  absl::StatusOr<std::unique_ptr<member::Observer>> observer_;
  absl::StatusOr<JobTrace> trace_ = absl::UnknownError("not taken yet");
  std::thread thread_;
};

}  // namespace gleaner::cli
