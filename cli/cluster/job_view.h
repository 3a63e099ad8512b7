// Makes the output of `gleaner status` from objects of the API server. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/api/reduction_plan.h"
#include "common/api/training_job.h"

namespace gleaner::cli {

// The fields of a corev1 Event that are shown.
struct JobEvent {
  absl::Time last = absl::InfinitePast();
  std::string type, reason, message;
  int64_t count = 1;
};
JobEvent parse_event(const nlohmann::json& object);

// Returns a table with a line for each job, sorted by namespace and name.
std::string jobs_table(std::vector<api::TrainingJob> jobs, bool with_namespace, absl::Time now);

// Returns the details of one job: state, plan, conditions, and its ten latest events, oldest first.
std::string job_text(const api::TrainingJob& job, const std::optional<api::ReductionPlan>& plan,
                     std::vector<JobEvent> events, absl::Time now);

}  // namespace gleaner::cli
