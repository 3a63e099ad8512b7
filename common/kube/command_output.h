// Runs a command and collects its standard output.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::kube {

// Runs `arguments[0]`, found in PATH unless it has a slash, with this process's environment and `variables`, which go
// before it. Returns its standard output once the command has ended. The command inherits standard error, and standard
// input if `has_input`. Blocks without a limit, since the command may ask a person something. NotFound: there is no
// such command; FailedPrecondition: it failed or printed more than 1 MiB.
absl::StatusOr<std::string> command_output(std::vector<std::string> arguments,
                                           std::map<std::string, std::string> variables, bool has_input);

}  // namespace gleaner::kube
