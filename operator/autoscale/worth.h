// Worth computes by how much one more or one fewer summer changes a job's step time, from the bandwidth model and from
// measurements.
#pragma once

#include <vector>

#include "common/plan/model.h"
#include "operator/autoscale/autoscale.h"

namespace gleaner::autoscale {

class Worth {
 public:
  // Leaves out summers that are leaving, and those whose index is in `without`. `settings` must outlive this object.
  Worth(const Job& job, const Settings& settings, const std::vector<uint32_t>& without);

  // Returns the reason for which gains can't be computed; nullopt: they can.
  std::optional<Code> unknown() const { return unknown_; }
  double step_seconds() const { return step_seconds_; }
  double exposed_seconds() const { return exposed_seconds_; }

  // Returns by how many seconds one more summer shortens a step: the model's gain, at most the exposed communication.
  double gain_seconds(double bits_per_second) const;
  // Returns by how many seconds a step would be longer without this summer, by the model. 0 if the exposed
  // communication is less than Settings::min_loss of the step.
  double loss_seconds(uint32_t index) const;
  double share(double seconds) const { return step_seconds_ > 0 ? seconds / step_seconds_ : 0; }

 private:
  void judge_metrics(const Job& job);

  const Settings& settings_;
  plan::Fleet fleet_;
  std::vector<uint32_t> indices_;  // index of each summer in fleet_
  double bytes_ = 0;
  double bound_ = 0;
  double step_seconds_ = 0, exposed_seconds_ = 0;
  std::optional<Code> unknown_;
};

}  // namespace gleaner::autoscale
