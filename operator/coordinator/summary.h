// What a job did and what its summers bought: for people, and as JSON for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/plan.h"

namespace gleaner::coordinator {

// Cumulative since the start of the job, by one rank.
struct Report {
  uint64_t steps = 0;
  uint64_t bytes = 0;                // gradient bytes reduced, not wire bytes
  double communication_seconds = 0;  // time with at least one push_pull in flight
};

// Zeros where nothing was reduced.
struct Summary {
  uint32_t workers = 0;
  uint32_t summers = 0;
  uint32_t local_ranks = 1;
  uint32_t epoch = 0;
  uint64_t tensors = 0;
  uint64_t partitions = 0;
  uint64_t steps = 0;
  double bytes_per_step = 0;              // gradient of one worker
  double step_communication_seconds = 0;  // of the slowest worker
  double goodput_bytes_per_second = 0;
  double bound_seconds = 0;                  // the best a step of bytes_per_step can take, by plan/model.h
  double efficiency = 0;                     // bound / step_communication_seconds
  double bound_seconds_without_summers = 0;  // the same with k = 0
  bool succeeded = false;
  std::string error;  // why not
};

// What plan and reports say; identity of the job and its outcome are the caller's to fill in.
Summary summarize(const plan::Plan& plan, const std::vector<Report>& reports);

std::string to_json(const Summary& summary);
std::string to_table(const Summary& summary);

// The JSON, as a whole or not at all: a temporary beside `path`, then renamed. Unavailable says what went wrong.
absl::Status write_summary(const Summary& summary, const std::string& path);

}  // namespace gleaner::coordinator
