#include "cli/cluster_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/flag_error.h"
#include "cli/local_status.h"
#include "cli/self/own_program.h"
#include "common/base/status_macros.h"
#include "common/kube/find_cluster.h"
#include "common/topology/spec.h"

namespace gleaner::cli {

absl::Status run_cluster_program(const std::vector<std::string>& arguments) {
  // Without the folder of this program, execv() would run a file of the working directory.
  GLN_ASSIGN_OR_RETURN(const std::filesystem::path own, own_program());
  const std::string program = own.parent_path() / "gleaner-cluster";
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  return absl::FailedPreconditionError(absl::StrCat("expected the program ", program,
                                                    ", which reads Kubernetes clusters: ", std::strerror(errno),
                                                    errno == ENOENT ? "; `make build` makes it" : ""));
}

absl::Status run_status(const ClusterFlags& flags, const std::vector<std::string>& arguments) {
  if (asks_for_local_job(flags)) {
    GLN_ASSIGN_OR_RETURN(const std::vector<LocalStatus> found, find_local_job(flags));
    return print_local_jobs(found, flags, std::nullopt);
  }
  if (!flags.job.empty() || asks_for_cluster(flags)) return run_cluster_program(arguments);
  if (const absl::Status cluster = kube::find_cluster(); !cluster.ok()) {
    const auto jobs = list_local_jobs();
    GLN_RETURN_IF_ERROR(require_local_jobs(jobs, cluster));
    return print_local_jobs(jobs, flags, JobObjects());
  }
  const absl::Status failed = run_cluster_program(arguments);
  const auto jobs = list_local_jobs();
  GLN_RETURN_IF_ERROR(require_local_jobs(jobs, failed));
  warn_of_cluster(failed);
  return print_local_jobs(jobs, flags, std::nullopt);
}

absl::Status run_cluster_topology(const TopologyCommandFlags& flags, const std::vector<std::string>& arguments) {
  GLN_RETURN_IF_ERROR(check(flags));
  const absl::Status cluster = kube::find_cluster();
  if (cluster.ok() || !flags.cluster.kube.kubeconfig.empty()) return run_cluster_program(arguments);
  return flag_error(flags.topology.name, absl::StrCat("give ", topology::kSpecs,
                                                      ", or the path of a JSON file; without it the network of a "
                                                      "cluster is shown, but ",
                                                      cluster.message()));
}

}  // namespace gleaner::cli
