// Functions that convert the operator's observations into the autoscaler's input.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/placement/placement.h"
#include "operator/autoscale/autoscale.h"
#include "operator/reconcile/observation.h"
#include "operator/service/measurements.h"

namespace gleaner::operation {

using Machines = std::vector<std::shared_ptr<const placement::Machine>>;

struct ScalingView {
  autoscale::Job job;
  // The spare bandwidth of each summer's machine, by index of the summer.
  std::vector<std::pair<uint32_t, double>> spare_bits_per_second;
};

// Returns whether the job's number of summers may change: its session runs with a plan, and the job wants summers.
bool may_scale(const api::TrainingJob& job, const coordinator::JobState& session);

// Returns the views of `jobs`, in order. Each job must have a session and may_scale(). `measurements` may be null.
std::vector<ScalingView> scaling_views(const std::vector<reconcile::Observation>& jobs, const Machines& machines,
                                       const Measurements* measurements, absl::Time now);

}  // namespace gleaner::operation
