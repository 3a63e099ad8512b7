#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace gleaner::cli {

void add_coordinator(CLI::App&, Context&) {}

}  // namespace gleaner::cli
