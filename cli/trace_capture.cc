#include "cli/trace_capture.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/timeline/chrome.h"
#include "cli/timeline/report.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace gleaner::cli {
namespace {

constexpr absl::Duration kAnswerWithin = absl::Seconds(5);

absl::Status record(const Env& env, member::Observer& observer, const CaptureLimits& limits) {
  GLN_RETURN_IF_ERROR(observer.record());
  const absl::Duration end = env.clock->since_start() + limits.duration;
  std::optional<uint64_t> first;
  while (true) {
    GLN_ASSIGN_OR_RETURN(const auto progress, observer.wait(end - env.clock->since_start()));
    if (progress.ending || progress.interrupted || env.clock->since_start() >= end) return absl::OkStatus();
    if (limits.steps == 0 || progress.steps == 0) continue;
    if (!first.has_value()) first = progress.steps;
    // Waits for two more steps than the limit: one was in progress when the recording began, and the end of the last
    // step is only known once the next one begins.
    if (progress.steps >= *first + limits.steps + 2) return absl::OkStatus();
  }
}

absl::Status write_file(const Timeline& timeline, const TraceReport& report, const std::string& path) {
  std::vector<Step> steps;
  std::vector<StepPath> paths;
  for (const TraceReport::Row& row : report.rows) {
    steps.push_back(row.step);
    paths.push_back(row.path);
  }
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  write_chrome_trace(timeline, steps, paths, [&file](absl::string_view text) {
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
  });
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("can't write the trace to '", path, "': ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<JobTrace> capture(const Env& env, member::Observer& observer, const CaptureLimits& limits) {
  GLN_RETURN_IF_ERROR(record(env, observer, limits));
  GLN_ASSIGN_OR_RETURN(auto stopped, observer.stop());
  JobTrace trace;
  trace.plan = std::move(stopped.plan);
  for (const member::Observer::Seat& seat : stopped.seats) {
    RankTrace& rank = trace.ranks.emplace_back(RankTrace{seat.member, seat.local_rank, "", {}});
    if (!seat.present) {
      rank.missing = "not connected to the coordinator";
      continue;
    }
    auto recording = observer.fetch(seat.seat, kAnswerWithin);
    if (recording.ok()) {
      rank.recording = *std::move(recording);
    } else {
      rank.missing = std::string(recording.status().message());
    }
  }
  return trace;
}

absl::StatusOr<std::string> report_trace(const JobTrace& trace, size_t most_steps, const std::string& file, bool json) {
  const Timeline timeline(trace);
  const TraceReport report = make_report(timeline, most_steps);
  if (!file.empty()) GLN_RETURN_IF_ERROR(write_file(timeline, report, file));
  return json ? absl::StrCat(to_json(report, timeline).dump(2), "\n") : to_text(report, timeline);
}

BackgroundCapture::BackgroundCapture(const Env& env, member::JoinOptions options, const CaptureLimits& limits)
    : env_(env), observer_(member::Observer::join(env, std::move(options))) {
  if (!observer_.ok()) return;
  auto thread = start_thread("gln-trace", [this, limits] {
    trace_ = capture(env_, **observer_, limits);
    (*observer_)->close();
  });
  if (thread.ok()) {
    thread_ = *std::move(thread);
  } else {
    trace_ = thread.status();
  }
}

absl::StatusOr<JobTrace> BackgroundCapture::finish() {
  if (!observer_.ok()) return observer_.status();
  if (thread_.joinable()) {
    (*observer_)->interrupt();
    thread_.join();
  }
  return trace_;
}

BackgroundCapture::~BackgroundCapture() { finish().IgnoreError(); }

}  // namespace gleaner::cli
