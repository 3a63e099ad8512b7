// Makes the output of `gleaner top`: the spare resources of machines, and the performance of jobs. Pure.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/api/training_job.h"
#include "common/placement/placement.h"

namespace gleaner::cli {

using Machines = std::vector<std::shared_ptr<const placement::Machine>>;

// Returns a line for each machine, sorted by spare bandwidth, with the bandwidth for a summer or the reason for which
// it can take none; then a line for each job with ready workers, sorted by goodput. The largest value comes first.
std::string top_text(Machines machines, std::vector<api::TrainingJob> jobs, absl::Time now);
nlohmann::json top_json(Machines machines, const std::vector<api::TrainingJob>& jobs, absl::Time now);

}  // namespace gleaner::cli
