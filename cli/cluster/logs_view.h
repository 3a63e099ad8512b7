// Makes the output of `gleaner logs`: the kubectl commands that show a job's logs. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/api/training_job.h"
#include "common/placement/fleet.h"

namespace gleaner::cli {

// Returns the commands. `pods` are this job's pods that exist, of all attempts.
std::string logs_text(const api::TrainingJob& job, const std::vector<placement::Pod>& pods);

}  // namespace gleaner::cli
