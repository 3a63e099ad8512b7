// The part of `gleaner status` that needs no cluster: this user's jobs of `gleaner run` on this machine. `gleaner` and
// `gleaner-cluster` share it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/cluster_flags.h"
#include "cli/launcher/local_job.h"
#include "cli/local_figures.h"

namespace gleaner::cli {

using JobObjects = std::vector<nlohmann::json>;

// Returns whether the user asks for one local job, by --pid or --job.
bool asks_for_local_job(const ClusterFlags& flags);
// Returns whether the user asks for a cluster's jobs alone. Their names are for commands that take a TrainingJob.
bool asks_for_cluster(const ClusterFlags& flags);

// Returns this user's jobs with their figures. Tells the user why a job has none.
std::vector<LocalStatus> list_local_jobs();
// Returns the job that --pid and --job choose. Errors: as for launcher::choose_local_job().
absl::StatusOr<std::vector<LocalStatus>> find_local_job(const ClusterFlags& flags);

std::string local_jobs_text(const std::vector<LocalStatus>& jobs);
// Returns a List of the cluster's jobs, with `localJobs`. It lacks the jobs that were not looked up.
std::string jobs_json(const std::optional<JobObjects>& of_cluster,
                      const std::optional<std::vector<LocalStatus>>& local);

// Prints the local jobs as text or JSON. `of_cluster`: as for jobs_json().
absl::Status print_local_jobs(const std::vector<LocalStatus>& jobs, const ClusterFlags& flags,
                              const std::optional<JobObjects>& of_cluster);

// Returns OK if there are local jobs. Errors: that of `cluster`, the reason why no jobs of a cluster are listed either.
absl::Status require_local_jobs(const std::vector<LocalStatus>& jobs, const absl::Status& cluster);
// Tells the user why a cluster's jobs are not listed beside the local ones.
void warn_of_cluster(const absl::Status& cluster);

}  // namespace gleaner::cli
