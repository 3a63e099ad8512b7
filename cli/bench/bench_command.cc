
#include "cli/bench/commands.h"

namespace gleaner::cli {

void add_bench(flags::Command& app, Context& context) {
  flags::Command bench = app.add_command("bench", "Measure sums and push_pulls on real data");
  bench.require_command();
  add_bench_sum(bench, context);
  add_bench_push_pull(bench, context);
}

}  // namespace gleaner::cli
