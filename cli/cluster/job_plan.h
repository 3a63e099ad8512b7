// The fleet that a job would get from what the cluster has to spare now. Pure: the operator's own choice of summers,
// over objects that were read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/plan/model.h"
#include "operator/placement/fleet.h"
#include "operator/types/training_job.h"

namespace gleaner::cli {

struct JobFleet {
  plan::Fleet fleet;
  std::vector<std::string> nodes;      // of workers, then summers; empty: not placed yet
  uint32_t assumed = 0;                // workers whose bandwidth nobody knows yet, and
  double assumed_bits_per_second = 0;  // what they were taken to have: the median of machines that take pods
  std::vector<std::string> refusals;   // "n5: spare CPU 0.1 is below 0.5": machines that take no summer of this job
};

// FailedPrecondition: not a single machine's speed is known.
absl::StatusOr<JobFleet> fleet_for(const types::TrainingJob& job, const placement::Fleet& cluster,
                                   const std::vector<placement::Pod>& pods, absl::Time now);

// For people, before the plan itself.
std::string to_text(const types::TrainingJob& job, const JobFleet& fleet);

}  // namespace gleaner::cli
