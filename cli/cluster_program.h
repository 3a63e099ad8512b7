// Replaces `gleaner` by the program `gleaner-cluster` (cli/cluster/main.cc), which is installed beside it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gleaner::cli {

// Runs gleaner-cluster in place of this process, with the same command line, and returns only if it cannot be run.
// Errors: FailedPrecondition, which says how to get the program.
absl::Status run_cluster_program(const std::vector<std::string>& arguments);

}  // namespace gleaner::cli
