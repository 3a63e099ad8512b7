#include "cli/local_status.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/launcher/local_jobs.h"
#include "cli/launcher/user_environment.h"
#include "cli/print.h"
#include "cli/self/own_command.h"
#include "common/base/status_macros.h"

namespace gleaner::cli {

namespace {

std::vector<launcher::LocalJob> running_jobs() {
  return launcher::LocalJobs(launcher::user_environment().runtime_folders).list();
}

std::vector<LocalStatus> ask(std::vector<launcher::LocalJob> jobs) {
  std::vector<LocalStatus> asked = ask_local_jobs(std::move(jobs));
  for (const LocalStatus& each : asked) {
    if (each.summary.ok()) continue;
    std::cerr << own_command("status") << ": warning: no figures of the job of process " << each.job.process.pid << ": "
              << each.summary.status().message() << std::endl;
  }
  return asked;
}

}  // namespace

bool asks_for_local_job(const ClusterFlags& flags) { return flags.pid != 0 || !flags.local_job.empty(); }

bool asks_for_cluster(const ClusterFlags& flags) {
  return !flags.ns.empty() || flags.all_namespaces || !flags.kube.kubeconfig.empty() || !flags.kube.context.empty() ||
         flags.output == "name";
}

std::vector<LocalStatus> list_local_jobs() { return ask(running_jobs()); }

absl::StatusOr<std::vector<LocalStatus>> find_local_job(const ClusterFlags& flags) {
  if (!flags.job.empty() || asks_for_cluster(flags)) {
    return absl::InvalidArgumentError(
        "--pid and --job choose a job on this machine, so no TrainingJob, cluster or "
        "namespace can be given");
  }
  GLN_ASSIGN_OR_RETURN(launcher::LocalJob job, launcher::choose_local_job(running_jobs(), flags.pid, flags.local_job));
  return ask({std::move(job)});
}

std::string local_jobs_text(const std::vector<LocalStatus>& jobs) {
  return absl::StrCat("On this machine (", own_command("trace"), " --pid PID shows where a job's time goes):\n",
                      local_status_table(jobs));
}

std::string jobs_json(const std::optional<JobObjects>& of_cluster,
                      const std::optional<std::vector<LocalStatus>>& local) {
  nlohmann::json list = {{"apiVersion", "v1"}, {"kind", "List"}};
  if (of_cluster.has_value()) list["items"] = *of_cluster;
  if (local.has_value()) {
    nlohmann::json& jobs = list["localJobs"] = nlohmann::json::array();
    for (const LocalStatus& each : *local) {
      jobs.push_back(nlohmann::json(to_json(each.job)));
      if (each.summary.ok()) jobs.back()["summary"] = nlohmann::json::parse(*each.summary, nullptr, false);
    }
  }
  return absl::StrCat(list.dump(2), "\n");
}

absl::Status print_local_jobs(const std::vector<LocalStatus>& jobs, const ClusterFlags& flags,
                              const std::optional<JobObjects>& of_cluster) {
  return print(flags.output == "json" ? jobs_json(of_cluster, jobs) : local_jobs_text(jobs));
}

absl::Status require_local_jobs(const std::vector<LocalStatus>& jobs, const absl::Status& cluster) {
  if (!jobs.empty()) return absl::OkStatus();
  return absl::Status(cluster.code(), absl::StrCat("no job of `", own_command("run"),
                                                   "` of this user runs on this machine, and ", cluster.message()));
}

void warn_of_cluster(const absl::Status& cluster) {
  std::cerr << own_command("status") << ": warning: a cluster's jobs are not listed: " << cluster.message()
            << std::endl;
}

}  // namespace gleaner::cli
