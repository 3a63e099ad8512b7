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

namespace gleaner::cli {

using JobObjects = std::vector<nlohmann::json>;

// Returns whether the user asks for a cluster's jobs alone. Their names are for commands that take a TrainingJob.
bool asks_for_cluster(const ClusterFlags& flags);

std::vector<launcher::LocalJob> list_local_jobs();

std::string local_jobs_text(const std::vector<launcher::LocalJob>& jobs);
// Returns a List of the cluster's jobs, with `localJobs`. It lacks the jobs that were not looked up.
std::string jobs_json(const std::optional<JobObjects>& of_cluster,
                      const std::optional<std::vector<launcher::LocalJob>>& local);

// Prints the local jobs as text or JSON. `of_cluster`: as for jobs_json().
absl::Status print_local_jobs(const std::vector<launcher::LocalJob>& jobs, const ClusterFlags& flags,
                              const std::optional<JobObjects>& of_cluster);

// Returns OK if there are local jobs. Errors: that of `cluster`, the reason why no jobs of a cluster are listed either.
absl::Status require_local_jobs(const std::vector<launcher::LocalJob>& jobs, const absl::Status& cluster);
// Tells the user why a cluster's jobs are not listed beside the local ones.
void warn_of_cluster(const absl::Status& cluster);

}  // namespace gleaner::cli
