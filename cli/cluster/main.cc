// The program `gleaner-cluster`. `gleaner` runs it for the commands that read a Kubernetes cluster, with the same
// command line.
#include "cli/cluster/actions.h"
#include "cli/cluster_commands.h"
#include "cli/plan_flags.h"
#include "cli/program.h"
#include "cli/topology_command_flags.h"

namespace gleaner::cli {
namespace {

void declare(flags::Program& app, Context& context) {
  add_plan(app, context, run_job_plan);
  add_topology(app, context, run_cluster_topology);
  add_cluster_commands(
      app, context,
      {.status = run_status, .explain = run_explain, .top = run_top, .logs = run_logs, .autoscale = run_autoscale});
}

}  // namespace
}  // namespace gleaner::cli

int main(int argc, char** argv) { return gleaner::cli::run_program(argc, argv, gleaner::cli::declare); }
