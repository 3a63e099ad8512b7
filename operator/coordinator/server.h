// One job's coordinator as a gRPC server, for jobs that are started by hand: a Service with a single job, whose members
// prove that they know its token.
//
// The public functions are thread safe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "operator/coordinator/metrics.h"
#include "operator/coordinator/options.h"
#include "operator/coordinator/summary.h"

namespace gleaner::coordinator {

class Jobs;

class Server final {
 public:
  // `metrics` may be null, and outlives the server. AlreadyExists: the port is in use; InvalidArgument: options out of
  // range, or `listen` is no address of this machine.
  static absl::StatusOr<std::unique_ptr<Server>> start(const Env& env, const Options& options, const std::string& token,
                                                       const Address& listen, Metrics* metrics);
  // Ends the job, if it goes on, and waits until everyone has heard it (or 2 s).
  ~Server();

  Address address() const;  // with the port in use

  // Ends the job with an error, if it goes on.
  void stop(const absl::Status& why);

  // From the first plan to the end.
  bool is_running() const;
  // None while the job goes on; OK when every worker left well.
  std::optional<absl::Status> outcome() const;
  // Waits for that, and until everyone has heard it (or 2 s).
  absl::Status wait();
  // Why the job failed, as far as one rank or summer is known to be the cause: plan index and local rank.
  struct Culprit {
    uint32_t member = 0;
    uint32_t local_rank = 0;
  };
  std::optional<Culprit> culprit() const;
  Summary summary() const;
  // The process of this worker of an elastic job has ended in error: nobody need wait for it.
  void worker_ended(uint32_t index, const absl::Status& how);
  // The process of this summer has ended, `how` it did: the job begins, or goes on, without it.
  void summer_ended(uint32_t index, const absl::Status& how);
  // Whether this summer of a job with a fixed n has ever joined; of a job that has begun: true.
  bool summer_has_joined(uint32_t index) const;
  // How the process of a rank of a job with a fixed n ended, whatever it was: Core::on_exited(). `message`: "exited
  // with status 3".
  void rank_exited(uint32_t worker, uint32_t local_rank, bool well, const std::string& message);
  // Whether any rank has ever joined.
  bool anybody_joined() const;

 private:
  Server(const Options& options, std::unique_ptr<Jobs> jobs);

  const Options options_;
  const std::unique_ptr<Jobs> jobs_;
};

}  // namespace gleaner::coordinator
