#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace gleaner::cli {

void add_plan(CLI::App&, Context&) {}

}  // namespace gleaner::cli
