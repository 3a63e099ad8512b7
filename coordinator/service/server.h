// Server is the coordinator of one job as a gRPC server, for jobs that are started by hand. It is a Service with a
// single job, whose members prove that they know the job's token.
//
// Public functions are thread safe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "coordinator/roster/options.h"
#include "coordinator/service/metrics.h"
#include "coordinator/status/summary.h"

namespace gleaner::coordinator {

class Jobs;

class Server final {
 public:
  // `metrics` may be null, and must outlive the server. AlreadyExists: the port is in use. InvalidArgument: an option
  // is out of range, or `listen` is not an address of this machine.
  static absl::StatusOr<std::unique_ptr<Server>> start(const Env& env, const Options& options, const std::string& token,
                                                       const Address& listen, Metrics* metrics);
  // Ends the job, if it has not ended, and waits until each member has closed its stream, for at most 2 s.
  ~Server();

  Address address() const;  // with the port in use

  // Ends the job with an error, if it has not ended.
  void stop(const absl::Status& why);

  // Returns whether the job has a plan in force and has not ended.
  bool is_running() const;
  // None while the job goes on; OK once every worker has left cleanly.
  std::optional<absl::Status> outcome() const;
  // Waits for the outcome, and then until each member has closed its stream, for at most 2 s. Returns the outcome.
  absl::Status wait();
  // The plan index and local rank of the rank or summer that made the job fail.
  struct Culprit {
    uint32_t member = 0;
    uint32_t local_rank = 0;
  };
  // Returns the culprit, if one is known.
  std::optional<Culprit> culprit() const;
  // Returns whether the job fails, and the cause is still open: Outcome::is_undecided().
  bool is_undecided() const;
  Summary summary() const;
  // Reports that the process of this worker of an elastic job has ended with an error, so that the job does not wait
  // for it.
  void worker_ended(uint32_t index, const absl::Status& how);
  // Reports that the process of this summer has ended. The job begins, or goes on, without it.
  void summer_ended(uint32_t index, const absl::Status& how);
  // See Core::set_summers().
  absl::Status set_summers(uint32_t summers);
  // Returns whether this summer of a job with a fixed n has ever joined. Always true once the job has begun.
  bool summer_has_joined(uint32_t index) const;
  // Reports how the process of a rank of a job with a fixed n ended: see Core::on_exited(). `message`: "exited with
  // status 3".
  void rank_exited(uint32_t worker, uint32_t local_rank, bool well, const std::string& message);
  // Returns whether any rank has ever joined.
  bool any_rank_joined() const;

 private:
  Server(const Options& options, std::unique_ptr<Jobs> jobs);

  const Options options_;
  const std::unique_ptr<Jobs> jobs_;
};

}  // namespace gleaner::coordinator
