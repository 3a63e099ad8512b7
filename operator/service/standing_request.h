// StandingRequest is the autoscaler's request for one job. It stays in force from round to round: an addition until
// the job has the summer, and a removal until the summer is gone. Pure.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/api/training_job.h"
#include "operator/autoscale/autoscale.h"
#include "operator/reconcile/observation.h"

namespace gleaner::operation {

class StandingRequest {
 public:
  // An addition that was not carried out stays in force this long, even if later verdicts have none.
  static constexpr absl::Duration kAdditionLife = absl::Seconds(10);
  // A summer that was told to leave should be gone after this time.
  static constexpr absl::Duration kOverdue = absl::Seconds(10);

  // Takes the verdict of a round up. `status` is the job's; `spare_bits_per_second` is the spare bandwidth of each
  // summer's machine, by index of the summer. Returns whether the reconciler has to act.
  bool update(const api::TrainingJobStatus& status, std::vector<std::pair<uint32_t, double>> spare_bits_per_second,
              autoscale::Verdict verdict, absl::Duration now);

  const reconcile::ScalingRequest& request() const { return request_; }

 private:
  reconcile::ScalingRequest request_;
  absl::Duration addition_since_;                                // since when the request has its addition
  absl::flat_hash_map<uint32_t, absl::Duration> removal_since_;  // since when the request has each removal, by summer
};

}  // namespace gleaner::operation
