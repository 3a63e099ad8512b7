#include "cli/cluster/actions.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/cluster/job_view.h"
#include "cli/local_status.h"
#include "cli/print.h"
#include "common/base/status_macros.h"
#include "common/kube/object.h"
#include "common/kube/resource.h"

namespace gleaner::cli {
namespace {

std::string jobs_text(ClusterAccess& access, const std::vector<kube::Object>& objects) {
  std::vector<api::TrainingJob> jobs;
  for (const kube::Object& object : objects) {
    if (auto job = api::parse_training_job(object); job.ok()) jobs.push_back(*std::move(job));
  }
  if (!jobs.empty()) return jobs_table(std::move(jobs), access.ns().empty(), access.now());
  return access.ns().empty() ? "No TrainingJobs.\n"
                             : absl::StrCat("No TrainingJobs in namespace ", access.ns(), "; -A: of all\n");
}

absl::StatusOr<std::vector<kube::Object>> list_jobs(const absl::StatusOr<std::unique_ptr<ClusterAccess>>& access) {
  GLN_RETURN_IF_ERROR(access.status());
  return (*access)->list(kube::training_jobs(), (*access)->ns());
}

// Lists a cluster's jobs alone.
absl::Status print_cluster_jobs(const ClusterFlags& flags) {
  const auto access = ClusterAccess::open(flags);
  GLN_ASSIGN_OR_RETURN(const std::vector<kube::Object> objects, list_jobs(access));
  if (flags.output == "json") return print(jobs_json(objects, std::nullopt));
  if (flags.output == "table") return print(jobs_text(**access, objects));
  std::string names;
  for (const kube::Object& object : objects) absl::StrAppend(&names, kube::name_of(object), "\n");
  return print(names);
}

// Lists the local jobs and a cluster's jobs.
absl::Status print_all_jobs(const ClusterFlags& flags) {
  const std::vector<LocalStatus> local = list_local_jobs();
  const bool as_json = flags.output == "json";
  // A cluster that is out of reach answers late.
  if (!as_json && !local.empty()) GLN_RETURN_IF_ERROR(print(local_jobs_text(local)));
  const auto access = ClusterAccess::open(flags);
  const auto objects = list_jobs(access);
  if (objects.ok() && as_json) return print(jobs_json(*objects, local));
  if (objects.ok()) return print(absl::StrCat(local.empty() ? "" : "\n", jobs_text(**access, *objects)));
  GLN_RETURN_IF_ERROR(require_local_jobs(local, objects.status()));
  warn_of_cluster(objects.status());
  return as_json ? print(jobs_json(std::nullopt, local)) : absl::OkStatus();
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
  if (flags.job.empty()) return asks_for_cluster(flags) ? print_cluster_jobs(flags) : print_all_jobs(flags);
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags));
  return print_job(*access, flags);
}

}  // namespace gleaner::cli
