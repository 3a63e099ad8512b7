#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace gleaner::cli {

void add_bench_push_pull(CLI::App&, Context&) {}

}  // namespace gleaner::cli
