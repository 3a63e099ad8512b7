// A session of the C ABI (gleaner/gleaner.h) for C++: closed when it goes, failures as Status. One thread.
#pragma once

#include <gleaner/gleaner.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/plan.h"

namespace gleaner::cli {

class BenchSession {
 public:
  // Who this rank is comes from the environment. Returns when the job is complete.
  // `transports`: as GLEANER_TRANSPORTS; empty: what that says.
  static absl::StatusOr<BenchSession> open(const std::string& transports);

  const gln_topology& topology() const { return topology_; }

  absl::StatusOr<uint32_t> declare(const plan::Tensor& tensor);
  absl::StatusOr<uint64_t> start_sum(uint32_t tensor, const void* input, void* output);
  absl::Status wait(uint64_t handle);
  // By what it reaches each summer: "inproc: worker/0; shm: worker/1".
  absl::StatusOr<std::string> transports();

  // Leaves the job in order; without it, the job hears that this rank failed.
  absl::Status close();

 private:
  struct CloseAsFailed {
    void operator()(gln_session* session) const { gln_close(session, 1); }
  };
  BenchSession() = default;

  std::unique_ptr<gln_session, CloseAsFailed> session_;
  gln_topology topology_ = GLN_TOPOLOGY_INIT;
};

}  // namespace gleaner::cli
