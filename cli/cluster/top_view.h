// Machines and what they can spare, jobs and how well they do. Pure.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/placement/placement.h"
#include "operator/types/training_job.h"

namespace gleaner::cli {

using Machines = std::vector<std::shared_ptr<const placement::Machine>>;

// A line per machine, most bandwidth to spare first, with why it could take no summer; then a line per job that runs,
// most goodput first.
std::string top_text(Machines machines, std::vector<types::TrainingJob> jobs, absl::Time now);
nlohmann::json top_json(Machines machines, const std::vector<types::TrainingJob>& jobs, absl::Time now);

}  // namespace gleaner::cli
