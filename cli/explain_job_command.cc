// gleaner explain JOB: what each machine of a running job does, what binds, what one more summer would buy.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/cluster/access.h"
#include "cli/cluster/explain_view.h"
#include "cli/commands.h"
#include "common/base/status_macros.h"

namespace gleaner::cli {
namespace {

struct Flags {
  ClusterFlags cluster;
  std::string job;
};

absl::Status run_explain(const Flags& flags) {
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags.cluster));
  GLN_ASSIGN_OR_RETURN(const types::TrainingJob job, access->job(flags.job));
  GLN_ASSIGN_OR_RETURN(std::optional<types::ReductionPlan> plan, access->plan(flags.job));
  if (!plan) {
    return absl::FailedPreconditionError(
        absl::StrCat("TrainingJob ", job.meta.key(), " has no plan yet; it is ",
                     job.status.phase.empty() ? "not looked at by an operator" : job.status.phase, ". `gleaner plan ",
                     flags.job, " --bytes N` shows what it would get"));
  }
  auto explained = explain_job(*std::move(plan));
  if (!explained.ok()) {
    return absl::Status(explained.status().code(),
                        absl::StrCat("TrainingJob ", job.meta.key(), ": ", explained.status().message()));
  }
  if (flags.cluster.output == "json") {
    nlohmann::json object = to_json(*explained);
    object["autoscaler"] = to_json(job.status.summers);
    return print(absl::StrCat(object.dump(2), "\n"));
  }
  return print(absl::StrCat(to_text(*explained), autoscaler_text(job.status.summers, absl::Now())));
}

}  // namespace

void add_explain_job(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("explain", "What each machine of a running TrainingJob does, and what binds");
  command->add_option("JOB", flags->job, "Name of a TrainingJob")->required();
  add_cluster_flags(*command, flags->cluster, Namespaces::kOne);
  command->callback([flags, &context] {
    context.command = "explain";
    context.run = [flags] { return run_explain(*flags); };
  });
}

}  // namespace gleaner::cli
