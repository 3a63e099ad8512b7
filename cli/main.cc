// The program `gleaner`, which is also the plugin `kubectl gleaner`. commands.h lists its subcommands.
#include "absl/strings/str_cat.h"
#include "cli/bench/commands.h"
#include "cli/cluster_commands.h"
#include "cli/cluster_program.h"
#include "cli/commands.h"
#include "cli/networks/commands.h"
#include "cli/networks/topology_command.h"
#include "cli/plan_command.h"
#include "cli/program.h"
#include "cli/self/own_command.h"

namespace gleaner::cli {
namespace {

void declare(flags::Program& app, Context& context) {
  app.add_footer(absl::StrCat("Begin with: ", own_command("run"), " --workers 2 --summers 1 -- python3 train.py\n'",
                              own_command("COMMAND"),
                              " --help' lists a command's flags; docs/cli.md describes all of them."));
  const auto in_cluster_program = [&context](const auto&) { return run_cluster_program(context.arguments); };
  add_plan(app, context, [in_cluster_program](const PlanFlags& flags) {
    return flags.cluster.job.empty() ? run_plan(flags) : in_cluster_program(flags);
  });
  add_topology(app, context, [&context](const TopologyCommandFlags& flags) {
    return is_of_cluster(flags) ? run_cluster_topology(flags, context.arguments) : run_topology(flags);
  });
  add_probe(app, context);
  add_ranks(app, context);
  add_sim(app, context);
  add_run(app, context);
  add_coordinator(app, context);
  add_trace(app, context);
  add_bench(app, context);
  add_schedule(app, context);
  add_strategies(app, context);
  add_cluster_commands(app, context,
                       {.status = [&context](const auto& flags) { return run_status(flags, context.arguments); },
                        .explain = in_cluster_program,
                        .top = in_cluster_program,
                        .logs = in_cluster_program,
                        .autoscale = in_cluster_program});
  add_completion(app, context);
}

}  // namespace
}  // namespace gleaner::cli

int main(int argc, char** argv) { return gleaner::cli::run_program(argc, argv, gleaner::cli::declare); }
