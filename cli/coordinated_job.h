// CoordinatedJob presents the coordinator's view of a job to the launcher that runs the job's processes. Indices follow
// the order in which `gleaner run` starts the processes: ranks, then summers.
#pragma once

#include <optional>
#include <string>

#include "cli/launcher/launcher.h"
#include "coordinator/roster/options.h"
#include "coordinator/service/server.h"

namespace gleaner::cli {

class CoordinatedJob : public launcher::Job {
 public:
  // `server` must outlive the object.
  CoordinatedJob(const coordinator::Options& options, coordinator::Server* server)
      : options_(options), server_(*server) {}

  std::optional<absl::Status> outcome() const override;
  std::optional<size_t> culprit() const override;
  bool is_undecided() const override { return server_.is_undecided(); }
  bool worker_ended(size_t index, const launcher::Exit& exit, const std::string& how) override;
  bool summer_ended(size_t index, const launcher::Exit& exit, const std::string& how) override;
  bool workers_learn_of_failure() const override { return server_.any_rank_joined(); }
  void end() override;
  void interrupt(const std::string& why) override { interruption_ = why; }
  void stop() override;

 private:
  const coordinator::Options options_;
  coordinator::Server& server_;
  bool ended_ = false;
  std::string interruption_;  // the reason for which the processes were told to end; empty: they were not
};

}  // namespace gleaner::cli
