// Jobs as the autoscaler is told of them, from what the operator observes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "operator/autoscale/autoscale.h"
#include "operator/placement/placement.h"
#include "operator/reconcile/decide.h"
#include "operator/service/measurements.h"

namespace gleaner::operation {

using Machines = std::vector<std::shared_ptr<const placement::Machine>>;

struct ScalingView {
  autoscale::Job job;
  // By summer: what its machine can spare it now.
  std::vector<std::pair<uint32_t, double>> spare_bits_per_second;
};

// True for a job whose number of summers may change: it has begun, and has not ended.
bool may_scale(const types::TrainingJob& job, const coordinator::JobState& session);

// All jobs that may be scaled, by what is observed of each (with a session). `measurements` may be null.
std::vector<ScalingView> scaling_views(const std::vector<reconcile::Observed>& jobs, const Machines& machines,
                                       const Measurements* measurements, absl::Time now);

}  // namespace gleaner::operation
