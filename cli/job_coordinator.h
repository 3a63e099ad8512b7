// JobCoordinator runs a job's coordinator in this process, with the metrics endpoint and the summary that the command
// line asks for.
#pragma once

#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/job_flags.h"
#include "common/base/env.h"
#include "common/metrics/server.h"
#include "coordinator/service/metrics.h"
#include "coordinator/service/server.h"

namespace gleaner::cli {

class JobCoordinator {
 public:
  static absl::StatusOr<std::unique_ptr<JobCoordinator>> start(const Env& env, const JobFlags& flags,
                                                               const coordinator::Options& options,
                                                               const std::string& token, const Address& listen);

  coordinator::Server& server() { return *server_; }

  // Writes the summary as a table to standard error and as JSON to the file of --summary. To be called after the job
  // has ended.
  absl::Status report() const;

 private:
  explicit JobCoordinator(const JobFlags& flags);

  const std::string summary_file_;
  const std::shared_ptr<prometheus::Registry> registry_;
  coordinator::Metrics metrics_;
  std::unique_ptr<http::Server> metrics_server_;
  std::unique_ptr<coordinator::Server> server_;
};

}  // namespace gleaner::cli
