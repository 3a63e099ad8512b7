// The commands of `gleaner`. Each add_*() adds one subcommand with its flags; when the user chose it, main() runs it.
//
// Exit status: 0 done; 2 the command line is wrong (the message says how to write it); 1 everything else. Errors go to
// standard error as "gleaner COMMAND: message" ("kubectl gleaner COMMAND: message"). Only results go to standard
// output.
#pragma once

#include <functional>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace gleaner::cli {

struct Context {
  std::function<absl::Status()> run;  // set by the chosen command's callback
  absl::string_view command;          // for messages
  int exit_status = 0;                // what main() returns when run() gave OK (`run` passes on a worker's)
};

void add_plan(CLI::App& app, Context& context);
// On a cluster; all of them only read it.
void add_status(CLI::App& app, Context& context);
void add_explain_job(CLI::App& app, Context& context);
void add_top(CLI::App& app, Context& context);
void add_logs_hint(CLI::App& app, Context& context);
void add_autoscale(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);  // after all others
void add_run(CLI::App& app, Context& context);
void add_coordinator(CLI::App& app, Context& context);
void add_trace(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);  // adds the two below
void add_bench_sum(CLI::App& bench, Context& context);
void add_bench_push_pull(CLI::App& bench, Context& context);

}  // namespace gleaner::cli
