// What one summer more or less means for a job's step, by the bandwidth model and by what was measured.
#pragma once

#include <vector>

#include "common/plan/model.h"
#include "operator/autoscale/autoscale.h"

namespace gleaner::autoscale {

class Worth {
 public:
  // Without `indices`, those of summers that go.
  Worth(const Job& job, const Settings& settings, const std::vector<uint32_t>& without);

  // Whether gains can be told at all; else the code says why not.
  std::optional<Code> unknown() const { return unknown_; }
  double step_seconds() const { return step_seconds_; }
  double exposed_seconds() const { return exposed_seconds_; }

  // Seconds of a step that one more summer saves: the model's gain of communication, at most what is exposed.
  double gain_seconds(double bits_per_second) const;
  // That the step would be longer without this one: the model's loss; nothing where all communication is hidden.
  double loss_seconds(uint32_t index) const;
  double share(double seconds) const { return step_seconds_ > 0 ? seconds / step_seconds_ : 0; }

 private:
  void judge_metrics(const Job& job);

  const Settings& settings_;
  plan::Fleet fleet_;
  std::vector<uint32_t> indices_;  // of the fleet's summers
  double bytes_ = 0;
  double bound_ = 0;
  double step_seconds_ = 0, exposed_seconds_ = 0;
  std::optional<Code> unknown_;
};

}  // namespace gleaner::autoscale
