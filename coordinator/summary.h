// Summary is the account of a job: its members, its steps, and the gain by its summers. It is written as a table for
// people and as JSON for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/plan.h"
#include "coordinator/efficiency_meter.h"

namespace gleaner::coordinator {

// All figures are 0 if nothing was reduced. The fields from bytes_per_step to basis are means over the whole job; each
// step is compared with the bound of the plan in force at that time. If no step began and ended under one plan, these
// fields are means over all reports, without an efficiency.
struct Summary {
  uint32_t workers = 0;
  uint32_t summers = 0;
  uint32_t local_ranks = 1;
  uint32_t epoch = 0;
  uint64_t tensors = 0;
  uint64_t partitions = 0;
  uint64_t steps = 0;
  double bytes_per_step = 0;              // gradient bytes of one worker
  double step_communication_seconds = 0;  // of the slowest worker
  double goodput_bytes_per_second = 0;
  double bound_seconds = 0;  // best possible time of a step of bytes_per_step, by plan/model.h; 0: unknown
  double efficiency = 0;     // bound_seconds / step_communication_seconds; 0 unless basis is kBandwidth
  double bound_seconds_without_summers = 0;  // the same with k = 0
  Basis basis = Basis::kNothingMeasured;
  Figures window;                    // of the last minute: status and metrics show it
  std::vector<EpochFigures> epochs;  // epochs with steps, of all rounds of an elastic job
  // The bound under the plan in force, for a step as in the last minute; 0: nothing moves, or a bandwidth is unknown.
  double plan_bound_seconds = 0;
  double plan_bound_seconds_without_summers = 0;
  bool bandwidths_known = true;  // of all members of the plan in force
  double push_ratio = 1;         // of the plan in force (plan::Fleet)
  bool succeeded = false;
  std::string error;  // why the job failed
};

// Returns a summary with the figures of the plan and of the reports. The caller adds the job's members and its outcome.
Summary summarize(const plan::Plan& plan, const EfficiencyMeter& efficiency, absl::Duration now);

std::string to_json(const Summary& summary);
std::string to_table(const Summary& summary);

// Writes the JSON as a whole or not at all: to a temporary file beside `path`, which is then renamed. The message of
// Unavailable has the system's error.
absl::Status write_summary(const Summary& summary, const std::string& path);

}  // namespace gleaner::coordinator
