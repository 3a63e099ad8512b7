// gleaner: plan, run, coordinator, trace, bench, autoscale, and what reads a cluster; also as the plugin `kubectl
// gleaner`.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"
#include "common/flags/flags.h"

namespace {

// A standard stream that the caller has closed stays an error to read or write; a file opened later must not become it.
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
  CLI::App app{"Gleaner: spare machines' CPUs and NICs make distributed training faster"};
  // kubectl runs a plugin by the name of its file.
  const absl::string_view program = argc > 0 ? argv[0] : "";
  const bool plugin = program.substr(program.rfind('/') + 1) == "kubectl-gleaner";
  const char* name = plugin ? "kubectl gleaner" : "gleaner";
  app.name(name);
  app.require_subcommand(1);
  app.set_version_flag("--version", GLEANER_VERSION);
  app.footer(
      "Begin with: gleaner run --workers 2 --summers 1 -- python3 train.py\n"
      "'gleaner COMMAND --help' lists a command's flags; docs/cli.md describes all of them.");
  gleaner::cli::Context context;
  gleaner::cli::add_plan(app, context);
  gleaner::cli::add_run(app, context);
  gleaner::cli::add_coordinator(app, context);
  gleaner::cli::add_trace(app, context);
  gleaner::cli::add_bench(app, context);
  gleaner::cli::add_autoscale(app, context);
  gleaner::cli::add_status(app, context);
  gleaner::cli::add_explain_job(app, context);
  gleaner::cli::add_top(app, context);
  gleaner::cli::add_logs_hint(app, context);
  gleaner::cli::add_completion(app, context);
  if (const std::optional<int> status = gleaner::flags::parse(app, argc, argv)) return *status;
  const absl::Status status = context.run();
  if (status.ok()) return context.exit_status;
  std::cerr << name << " " << context.command << ": " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? 2 : 1;
}
