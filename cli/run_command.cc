#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace gleaner::cli {

void add_run(CLI::App&, Context&) {}

}  // namespace gleaner::cli
