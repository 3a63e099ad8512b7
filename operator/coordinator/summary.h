// What a job did and what its summers bought: for people, and as JSON for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/plan.h"
#include "operator/coordinator/progress.h"

namespace gleaner::coordinator {

// Zeros where nothing was reduced. The figures from bytes_per_step to basis are means over the whole job, each step
// beside the bound of the plan in force then; where no step began and ended under one plan, over whatever there was,
// without an efficiency.
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
  double bound_seconds = 0;  // the best a step of bytes_per_step can take, by plan/model.h; 0: not known
  double efficiency = 0;     // bound / step_communication_seconds; 0 unless basis is kBandwidth
  double bound_seconds_without_summers = 0;  // the same with k = 0
  Basis basis = Basis::kNothingMeasured;
  Figures window;                    // of the last minute: what status and metrics show
  std::vector<EpochFigures> epochs;  // those with steps; of an elastic job all rounds'
  // Of the plan in force, for a step as in the last minute; 0: nothing moves, or not known.
  double plan_bound_seconds = 0;
  double plan_bound_seconds_without_summers = 0;
  bool bandwidths_known = true;  // of all members of the plan in force
  bool succeeded = false;
  std::string error;  // why not
};

// What plan and reports say; identity of the job and its outcome are the caller's to fill in.
Summary summarize(const plan::Plan& plan, const Progress& progress, absl::Duration now);

std::string to_json(const Summary& summary);
std::string to_table(const Summary& summary);

// The JSON, as a whole or not at all: a temporary beside `path`, then renamed. Unavailable says what went wrong.
absl::Status write_summary(const Summary& summary, const std::string& path);

}  // namespace gleaner::coordinator
