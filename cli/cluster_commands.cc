#include "cli/cluster_commands.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/self/own_command.h"

namespace gleaner::cli {
namespace {

template <typename Flags>
void run_when_chosen(flags::Command command, Context& context, std::shared_ptr<Flags> flags,
                     const std::function<absl::Status(const Flags&)>& action) {
  command.on_chosen(
      [flags = std::move(flags), action, &context] { context.run = [flags, action] { return action(*flags); }; });
}

}  // namespace

void add_cluster_commands(flags::Command& app, Context& context, const ClusterActions& actions) {
  auto autoscaled = std::make_shared<AutoscaleFlags>();
  flags::Command autoscale = app.add_command("autoscale", "Print the autoscaler's decisions for recorded series");
  autoscale.add_text("FILE", autoscaled->file, "Recorded series as JSON: docs/autoscaler.md has the format").required();
  autoscale.add_switch("--every", autoscaled->every, "Print every round, not only those with a change");
  run_when_chosen(autoscale, context, autoscaled, actions.autoscale);

  auto shown = std::make_shared<ClusterFlags>();
  flags::Command status =
      app.add_command("status", absl::StrCat("List this machine's jobs of `", own_command("run"),
                                             "` and a cluster's TrainingJobs, or show the details of one TrainingJob"));
  add_job_argument(status, *shown);
  add_connection_flags(status, *shown, Namespaces::kOneOrAll);
  status.add_text("-o,--output", shown->output, "table, json, or name: names only")
      .one_of({"table", "json", "name"})
      .show_default();
  status.add_number("--pid", shown->pid, absl::StrCat("Only the job of this process of `", own_command("run"), "`"))
      .between(int64_t{1}, int64_t{1} << 31);
  status.add_text("--job", shown->local_job, absl::StrCat("Only the job of `", own_command("run"), "` with this name"))
      .name();
  run_when_chosen(status, context, shown, actions.status);

  auto explained = std::make_shared<ClusterFlags>();
  flags::Command explain = app.add_command(
      "explain", "Show the load of each machine of a running TrainingJob, and which machine limits the step");
  add_job_argument(explain, *explained).required();
  add_cluster_flags(explain, *explained, Namespaces::kOne);
  run_when_chosen(explain, context, explained, actions.explain);

  auto topped = std::make_shared<ClusterFlags>();
  flags::Command top =
      app.add_command("top", "Show the spare resources of a cluster's machines, and the performance of its jobs");
  add_cluster_flags(top, *topped, Namespaces::kNone);
  run_when_chosen(top, context, topped, actions.top);

  auto logged = std::make_shared<ClusterFlags>();
  flags::Command logs = app.add_command("logs", "Print the kubectl commands that show a TrainingJob's logs");
  add_job_argument(logs, *logged).required();
  add_connection_flags(logs, *logged, Namespaces::kOne);
  run_when_chosen(logs, context, logged, actions.logs);
}

}  // namespace gleaner::cli
