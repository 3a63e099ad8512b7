// gleaner: plan, run, coordinator, bench.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app{"Gleaner: spare machines' CPUs and NICs make distributed training faster"};
  app.name("gleaner");
  app.require_subcommand(1);
  app.set_version_flag("--version", GLEANER_VERSION);
  gleaner::cli::Context context;
  gleaner::cli::add_plan(app, context);
  gleaner::cli::add_run(app, context);
  gleaner::cli::add_coordinator(app, context);
  gleaner::cli::add_bench(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);  // prints help, version or the error
    return status == 0 ? 0 : 2;
  }
  const absl::Status status = context.run();
  if (status.ok()) return context.exit_status;
  std::cerr << "gleaner " << context.command << ": " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? 2 : 1;
}
