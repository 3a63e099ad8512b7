// The program `gleaner`, which is also the plugin `kubectl gleaner`. commands.h lists its subcommands.
#include <fcntl.h>
#include <unistd.h>

#include "cli/commands.h"
#include "common/flags/command.h"

namespace {

// Occupies each standard stream that the caller has closed, such that reading or writing it still fails. Otherwise the
// next opened file would get its descriptor and so become a standard stream.
void keep_closed_streams_closed() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int reserved = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (reserved >= 0 && reserved != stream) ::close(reserved);
  }
}

}  // namespace

int main(int argc, char** argv) {
  keep_closed_streams_closed();
  // kubectl runs a plugin under the name of its file.
  const absl::string_view program = argc > 0 ? argv[0] : "";
  const bool plugin = program.substr(program.rfind('/') + 1) == "kubectl-gleaner";
  gleaner::flags::Program app(plugin ? "kubectl gleaner" : "gleaner",
                              "Gleaner: spare machines' CPUs and NICs make distributed training faster",
                              GLEANER_VERSION);
  app.require_command();
  app.add_footer(
      "Begin with: gleaner run --workers 2 --summers 1 -- python3 train.py\n"
      "'gleaner COMMAND --help' lists a command's flags; docs/cli.md describes all of them.");
  gleaner::cli::Context context;
  gleaner::cli::add_plan(app, context);
  gleaner::cli::add_topology(app, context);
  gleaner::cli::add_probe(app, context);
  gleaner::cli::add_ranks(app, context);
  gleaner::cli::add_sim(app, context);
  gleaner::cli::add_run(app, context);
  gleaner::cli::add_coordinator(app, context);
  gleaner::cli::add_trace(app, context);
  gleaner::cli::add_bench(app, context);
  gleaner::cli::add_schedule(app, context);
  gleaner::cli::add_strategies(app, context);
  gleaner::cli::add_autoscale(app, context);
  gleaner::cli::add_status(app, context);
  gleaner::cli::add_explain_job(app, context);
  gleaner::cli::add_top(app, context);
  gleaner::cli::add_logs_hint(app, context);
  gleaner::cli::add_completion(app, context);
  if (const std::optional<int> status = app.parse(argc, argv)) return *status;
  const absl::Status status = context.run();
  return status.ok() ? context.exit_status : app.report(status);
}
