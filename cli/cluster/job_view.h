// Jobs for people, from what the API server has of them. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/types/reduction_plan.h"
#include "operator/types/training_job.h"

namespace gleaner::cli {

// What counts of a corev1 Event.
struct JobEvent {
  absl::Time last = absl::InfinitePast();
  std::string type, reason, message;
  int64_t count = 1;
};
JobEvent parse_event(const nlohmann::json& object);

// A line per job, by namespace and name.
std::string jobs_table(std::vector<types::TrainingJob> jobs, bool with_namespace, absl::Time now);

// All about one: what it does, its conditions, its latest events (the last ten, oldest first).
std::string job_text(const types::TrainingJob& job, const std::optional<types::ReductionPlan>& plan,
                     std::vector<JobEvent> events, absl::Time now);

}  // namespace gleaner::cli
