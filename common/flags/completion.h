// Generates the scripts by which shells complete a program's commands, flags and flag values.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "common/flags/outline.h"

namespace gleaner::flags {

// Returns the script for `shell`: bash, zsh or fish. The output of `jobs`, a shell command that prints one job per
// line, completes a positional argument named JOB. Empty: such an argument is not completed.
std::string completion_script(const CommandOutline& program, absl::string_view shell, absl::string_view jobs = "");

}  // namespace gleaner::flags
