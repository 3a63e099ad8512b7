// Takes a trace of a running job through its coordinator, and makes files and reports of it.
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
  uint64_t steps = 0;  // 0: as many as there are; else at least so many whole ones, and what comes in two seconds more
};

// Records until a limit, the job's end, or observer.interrupt(); then asks every member. Who does not answer is named
// in the trace. Cancelled: interrupted before the job had begun.
absl::StatusOr<JobTrace> capture(const Env& env, member::Observer& observer, const CaptureLimits& limits);

// Of the trace's first `most_steps` steps (0: all): the report, as JSON or text. Writes the merged trace to `file`
// unless that is empty.
absl::StatusOr<std::string> report_trace(const JobTrace& trace, size_t most_steps, const std::string& file, bool json);

// A capture on a thread of its own ("gln-trace"), for whoever runs the job.
class BackgroundCapture {
 public:
  BackgroundCapture(const Env& env, member::JoinOptions options, const CaptureLimits& limits);
  ~BackgroundCapture();
  // Ends it, if it goes on.
  absl::StatusOr<JobTrace> finish();

 private:
  const Env env_;
  absl::StatusOr<std::unique_ptr<member::Observer>> observer_;
  absl::StatusOr<JobTrace> trace_ = absl::UnknownError("not taken yet");
  std::thread thread_;
};

}  // namespace gleaner::cli
