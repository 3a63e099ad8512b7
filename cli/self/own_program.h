// Finds the file of this program, beside which builds and installations put Gleaner's other programs.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"

namespace gleaner::cli {

// Returns the absolute path of this program's file. Errors: that of the system, for example if /proc is not mounted.
absl::StatusOr<std::filesystem::path> own_program();

}  // namespace gleaner::cli
