// BenchSession is a session of the C ABI (gleaner.h) as a C++ object. It returns failures as Status, and its destructor
// closes the session. Use it from one thread at a time.
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
  // Joins the job as the rank that the GLEANER_* variables name, and returns when all members have joined.
  // `transports` has the format of GLEANER_TRANSPORTS; if it is empty, that variable applies.
  static absl::StatusOr<BenchSession> open(const std::string& transports);

  const gln_rank_info& info() const { return info_; }

  absl::StatusOr<uint32_t> declare(const plan::Tensor& tensor);
  absl::StatusOr<uint64_t> start_sum(uint32_t tensor, const void* input, void* output);
  absl::Status wait(uint64_t handle);
  // Returns how the job sums a tensor, as gln_get_tensor_plan() does.
  absl::StatusOr<std::string> tensor_plan(uint32_t tensor);
  // Returns the transport to each summer: "inproc: worker/0; shm: worker/1".
  absl::StatusOr<std::string> transports();

  // Leaves the job in order. Destroying the session without close() reports to the job that this rank failed.
  absl::Status close();

 private:
  struct CloseAsFailed {
    void operator()(gln_session* session) const { gln_close(session, 1); }
  };
  BenchSession() = default;

  std::unique_ptr<gln_session, CloseAsFailed> session_;
  gln_rank_info info_ = GLN_RANK_INFO_INIT;
};

}  // namespace gleaner::cli
