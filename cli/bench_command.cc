#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace gleaner::cli {

void add_bench(CLI::App& app, Context& context) {
  CLI::App* bench = app.add_subcommand("bench", "Measure sums and push_pulls on real data");
  bench->require_subcommand(1);
  add_bench_sum(*bench, context);
  add_bench_push_pull(*bench, context);
}

}  // namespace gleaner::cli
