#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace gleaner::cli {

void add_bench_sum(CLI::App&, Context&) {}

}  // namespace gleaner::cli
