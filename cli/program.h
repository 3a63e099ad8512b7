// Runs a program with commands: the part that `gleaner` and `gleaner-cluster` share.
#pragma once

#include <functional>

#include "cli/commands.h"
#include "common/flags/command.h"

namespace gleaner::cli {

// Runs a program whose commands `declare` adds, and returns its exit status (commands.h). The program is named after
// argv[0]: "kubectl gleaner" if kubectl runs it as a plugin, else "gleaner".
int run_program(int argc, char** argv, const std::function<void(flags::Program&, Context&)>& declare);

}  // namespace gleaner::cli
