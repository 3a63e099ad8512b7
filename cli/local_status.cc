#include "cli/local_status.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/launcher/local_jobs.h"
#include "cli/launcher/user_environment.h"
#include "cli/print.h"
#include "cli/self/own_command.h"

namespace gleaner::cli {

bool asks_for_cluster(const ClusterFlags& flags) {
  return !flags.ns.empty() || flags.all_namespaces || !flags.kube.kubeconfig.empty() || !flags.kube.context.empty() ||
         flags.output == "name";
}

std::vector<launcher::LocalJob> list_local_jobs() {
  return launcher::LocalJobs(launcher::user_environment().runtime_folders).list();
}

std::string local_jobs_text(const std::vector<launcher::LocalJob>& jobs) {
  return absl::StrCat("On this machine (", own_command("trace"), " --pid PID shows where a job's time goes):\n",
                      launcher::local_jobs_table(jobs));
}

std::string jobs_json(const std::optional<JobObjects>& of_cluster,
                      const std::optional<std::vector<launcher::LocalJob>>& local) {
  nlohmann::json list = {{"apiVersion", "v1"}, {"kind", "List"}};
  if (of_cluster.has_value()) list["items"] = *of_cluster;
  if (local.has_value()) {
    nlohmann::json& jobs = list["localJobs"] = nlohmann::json::array();
    for (const launcher::LocalJob& job : *local) jobs.push_back(nlohmann::json(to_json(job)));
  }
  return absl::StrCat(list.dump(2), "\n");
}

absl::Status print_local_jobs(const std::vector<launcher::LocalJob>& jobs, const ClusterFlags& flags,
                              const std::optional<JobObjects>& of_cluster) {
  return print(flags.output == "json" ? jobs_json(of_cluster, jobs) : local_jobs_text(jobs));
}

absl::Status require_local_jobs(const std::vector<launcher::LocalJob>& jobs, const absl::Status& cluster) {
  if (!jobs.empty()) return absl::OkStatus();
  return absl::Status(cluster.code(), absl::StrCat("no job of `", own_command("run"),
                                                   "` of this user runs on this machine, and ", cluster.message()));
}

void warn_of_cluster(const absl::Status& cluster) {
  std::cerr << own_command("status") << ": warning: a cluster's jobs are not listed: " << cluster.message()
            << std::endl;
}

}  // namespace gleaner::cli
