#include "cli/job_coordinator.h"

#include <iostream>

#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace gleaner::cli {

JobCoordinator::JobCoordinator(const JobFlags& flags)
    : summary_file_(flags.summary),
      registry_(std::make_shared<prometheus::Registry>()),
      metrics_(*registry_, flags.job) {}

absl::StatusOr<std::unique_ptr<JobCoordinator>> JobCoordinator::start(const Env& env, const JobFlags& flags,
                                                                      const coordinator::Options& options,
                                                                      const std::string& token, const Address& listen) {
  auto coordinator = std::unique_ptr<JobCoordinator>(new JobCoordinator(flags));
  GLN_ASSIGN_OR_RETURN(coordinator->metrics_server_, metrics::serve_if_given(flags.metrics, coordinator->registry_));
  if (coordinator->metrics_server_ != nullptr) {
    env.log->info("serving metrics", "address", coordinator->metrics_server_->address().to_string());
  }
  GLN_ASSIGN_OR_RETURN(coordinator->server_,
                       coordinator::Server::start(env, options, token, listen, &coordinator->metrics_));
  return coordinator;
}

absl::Status JobCoordinator::report() const {
  const coordinator::Summary summary = server_->summary();
  if (summary.whole.steps > 0) std::cerr << to_table(summary) << std::flush;
  if (summary_file_.empty()) return absl::OkStatus();
  return replace_file(summary_file_, to_json(summary), "the summary");
}

}  // namespace gleaner::cli
