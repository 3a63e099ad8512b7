// Names the commands of this program as the user calls them, for messages and help: `gleaner run` or, if kubectl runs
// the program as its plugin, `kubectl gleaner run`.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace gleaner::cli {

// Returns "kubectl gleaner" if `called_as`, the path by which a program was called, is that of kubectl's plugin, else
// "gleaner". `gleaner-cluster` is called by the path of the program that it replaces.
std::string program_name(absl::string_view called_as);

// Returns the name of this process's program. It never changes.
std::string own_name();

// Returns own_name() with a command: own_command("probe pairs") is "gleaner probe pairs", for example.
std::string own_command(absl::string_view command);

}  // namespace gleaner::cli
