// gleaner status [JOB]: lists the jobs of a cluster, or shows the details of one.
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/cluster/job_view.h"
#include "cli/commands.h"
#include "common/base/status_macros.h"
#include "common/kube/object.h"
#include "common/kube/resource.h"

namespace gleaner::cli {
namespace {

struct Flags {
  ClusterFlags cluster;
  std::string job;
};

absl::Status print_jobs(ClusterAccess& access, const Flags& flags) {
  GLN_ASSIGN_OR_RETURN(std::vector<kube::Object> objects, access.list(kube::training_jobs(), access.ns()));
  if (flags.cluster.output == "json") {
    const nlohmann::json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(objects)}};
    return print(absl::StrCat(list.dump(2), "\n"));
  }
  std::vector<api::TrainingJob> jobs;
  std::string names;
  for (const kube::Object& object : objects) {
    absl::StrAppend(&names, kube::name_of(object), "\n");
    if (auto job = api::parse_training_job(object); job.ok()) jobs.push_back(*std::move(job));
  }
  if (flags.cluster.output == "name") return print(names);
  if (jobs.empty()) {
    return print(access.ns().empty() ? "No TrainingJobs.\n"
                                     : absl::StrCat("No TrainingJobs in namespace ", access.ns(), "; -A: of all\n"));
  }
  return print(jobs_table(std::move(jobs), access.ns().empty(), access.now()));
}

absl::Status print_job(ClusterAccess& access, const Flags& flags) {
  if (access.ns().empty()) return absl::InvalidArgumentError("one JOB is in one namespace: give -n instead of -A");
  GLN_ASSIGN_OR_RETURN(const kube::Object object, access.job_object(flags.job));
  if (flags.cluster.output == "name") return print(absl::StrCat(flags.job, "\n"));
  GLN_ASSIGN_OR_RETURN(const std::optional<kube::Object> plan_object, access.plan_object(flags.job));
  // A user who may read jobs may lack the permission to read events.
  auto events = access.list(kube::events(), access.ns(), "",
                            absl::StrCat("involvedObject.kind=TrainingJob,involvedObject.name=", flags.job));
  if (!events.ok()) events = std::vector<kube::Object>();
  if (flags.cluster.output == "json") {
    const nlohmann::json all = {
        {"job", object}, {"plan", plan_object ? *plan_object : nlohmann::json()}, {"events", *std::move(events)}};
    return print(absl::StrCat(all.dump(2), "\n"));
  }
  GLN_ASSIGN_OR_RETURN(const api::TrainingJob job, api::parse_training_job(object));
  std::optional<api::ReductionPlan> plan;
  if (plan_object) {
    GLN_ASSIGN_OR_RETURN(plan, api::parse_reduction_plan(*plan_object));
  }
  std::vector<JobEvent> happened;
  happened.reserve(events->size());
  for (const kube::Object& event : *events) happened.push_back(parse_event(event));
  return print(job_text(job, plan, std::move(happened), access.now()));
}

absl::Status run_status(const Flags& flags) {
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags.cluster));
  return flags.job.empty() ? print_jobs(*access, flags) : print_job(*access, flags);
}

}  // namespace

void add_status(flags::Command& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  flags::Command command = app.add_command("status", "List the TrainingJobs of a cluster, or show the details of one");
  add_job_argument(command, flags->job);
  add_connection_flags(command, flags->cluster, Namespaces::kOneOrAll);
  command.add_text("-o,--output", flags->cluster.output, "table, json, or name: names only")
      .one_of({"table", "json", "name"})
      .show_default();
  command.on_chosen([flags, &context] { context.run = [flags] { return run_status(*flags); }; });
}

}  // namespace gleaner::cli
