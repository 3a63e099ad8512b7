// LocalStatus is a job of `gleaner run` on this machine with its live figures: the summary that its coordinator sends.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/launcher/local_job.h"

namespace gleaner::cli {

struct LocalStatus {
  launcher::LocalJob job;
  absl::StatusOr<std::string> summary;  // a JSON object, as --summary writes it (docs/cli.md)
};

// Asks the coordinators of all jobs for their summaries, beside each other. Waits up to 3 s to join each, and 3 s for
// its answer.
std::vector<LocalStatus> ask_local_jobs(std::vector<launcher::LocalJob> jobs);

// Returns a line for each job, below a head. A job without a summary has "-" in place of figures. Pure.
std::string local_status_table(const std::vector<LocalStatus>& jobs);

}  // namespace gleaner::cli
