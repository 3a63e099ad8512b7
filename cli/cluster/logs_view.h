// The kubectl commands that show a job's logs. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/placement/fleet.h"
#include "operator/types/training_job.h"

namespace gleaner::cli {

// `pods`: of this job, of all attempts that are still there.
std::string logs_text(const types::TrainingJob& job, const std::vector<placement::Pod>& pods);

}  // namespace gleaner::cli
