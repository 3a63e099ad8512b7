#include "cli/cluster/actions.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/cluster/job_view.h"
#include "cli/launcher/local_jobs.h"
#include "cli/launcher/user_environment.h"
#include "cli/print.h"
#include "common/base/status_macros.h"
#include "common/kube/object.h"
#include "common/kube/resource.h"

namespace gleaner::cli {
namespace {

// Returns whether the user asks for a cluster's jobs alone. Their names are for commands that take a TrainingJob.
bool asks_for_cluster(const ClusterFlags& flags) {
  return !flags.ns.empty() || flags.all_namespaces || !flags.kube.kubeconfig.empty() || !flags.kube.context.empty() ||
         flags.output == "name";
}

std::string local_jobs_text(const std::vector<launcher::LocalJob>& jobs) {
  return absl::StrCat("On this machine (gleaner trace --pid PID shows where a job's time goes):\n",
                      launcher::local_jobs_table(jobs));
}

absl::Status print_json(const std::vector<kube::Object>& objects, const std::vector<launcher::LocalJob>& local) {
  nlohmann::json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}};
  list["localJobs"] = nlohmann::json::array();
  for (const launcher::LocalJob& job : local) list["localJobs"].push_back(nlohmann::json(to_json(job)));
  return print(absl::StrCat(list.dump(2), "\n"));
}

absl::Status print_cluster_jobs(ClusterAccess& access, const ClusterFlags& flags,
                                const std::vector<launcher::LocalJob>& local) {
  GLN_ASSIGN_OR_RETURN(std::vector<kube::Object> objects, access.list(kube::training_jobs(), access.ns()));
  if (flags.output == "json") return print_json(objects, local);
  std::vector<api::TrainingJob> jobs;
  std::string names;
  for (const kube::Object& object : objects) {
    absl::StrAppend(&names, kube::name_of(object), "\n");
    if (auto job = api::parse_training_job(object); job.ok()) jobs.push_back(*std::move(job));
  }
  if (flags.output == "name") return print(names);
  if (jobs.empty()) {
    return print(access.ns().empty() ? "No TrainingJobs.\n"
                                     : absl::StrCat("No TrainingJobs in namespace ", access.ns(), "; -A: of all\n"));
  }
  return print(jobs_table(std::move(jobs), access.ns().empty(), access.now()));
}

absl::Status print_jobs(const ClusterFlags& flags) {
  const auto access = ClusterAccess::open(flags);
  if (asks_for_cluster(flags)) {
    GLN_RETURN_IF_ERROR(access.status());
    return print_cluster_jobs(**access, flags, {});
  }
  const std::vector<launcher::LocalJob> local =
      launcher::LocalJobs(launcher::user_environment().runtime_folders).list();
  const bool has_cluster = !absl::IsNotFound(access.status());
  if (!has_cluster && local.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no job of `gleaner run` of this user runs on this machine, and ", access.status().message()));
  }
  const bool as_json = flags.output == "json";
  if (!has_cluster) return as_json ? print_json({}, local) : print(local_jobs_text(local));
  if (!as_json && !local.empty()) GLN_RETURN_IF_ERROR(print(local_jobs_text(local) + "\n"));
  GLN_RETURN_IF_ERROR(access.status());
  return print_cluster_jobs(**access, flags, local);
}

absl::Status print_job(ClusterAccess& access, const ClusterFlags& flags) {
  if (access.ns().empty()) return absl::InvalidArgumentError("one JOB is in one namespace: give -n instead of -A");
  GLN_ASSIGN_OR_RETURN(const kube::Object object, access.job_object(flags.job));
  if (flags.output == "name") return print(absl::StrCat(flags.job, "\n"));
  GLN_ASSIGN_OR_RETURN(const std::optional<kube::Object> plan_object, access.plan_object(flags.job));
  // A user who may read jobs may lack the permission to read events.
  auto events = access.list(kube::events(), access.ns(), "",
                            absl::StrCat("involvedObject.kind=TrainingJob,involvedObject.name=", flags.job));
  if (!events.ok()) events = std::vector<kube::Object>();
  if (flags.output == "json") {
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

}  // namespace

absl::Status run_status(const ClusterFlags& flags) {
  if (flags.job.empty()) return print_jobs(flags);
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags));
  return print_job(*access, flags);
}

}  // namespace gleaner::cli
