// Worth computes by how much one more or one fewer summer changes a job's step time, from the bandwidth model and from
// measurements. Where the job has a fabric, the model counts the uplinks of its groups, too (fabric::StepBound).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/fabric/nearness.h"
#include "common/fabric/step_bound.h"
#include "common/plan/model.h"
#include "operator/autoscale/autoscale.h"

namespace gleaner::autoscale {

class Worth {
 public:
  // Leaves out summers that are leaving, and those whose index is in `without`. `job` and `settings` must outlive this
  // object.
  Worth(const Job& job, const Settings& settings, const std::vector<uint32_t>& without);

  // Returns the reason for which gains can't be computed; nullopt: they can.
  std::optional<Code> unknown() const { return unknown_; }
  double step_seconds() const { return step_seconds_; }
  double exposed_seconds() const { return exposed_seconds_; }

  // Returns by how many seconds one more summer on this machine shortens a step: the model's gain, at most the exposed
  // communication. A gain that is not above `least` may be returned as 0, which takes less time.
  double gain_seconds(const Candidate& machine, double least = 0) const;
  // Returns by how many seconds a step would be longer without this summer, by the model. 0 if the exposed
  // communication is less than Settings::min_loss of the step.
  double loss_seconds(uint32_t index) const;
  double share(double seconds) const { return step_seconds_ > 0 ? seconds / step_seconds_ : 0; }

  // Returns the group of the machine's node; nullopt: it is in none, or the job has no fabric.
  std::optional<uint32_t> group_of(const Candidate& machine) const;
  // Returns how near the machine is to the job's workers (fabric::Nearness); 0 without a fabric.
  uint32_t nearness(const Candidate& machine) const;

 private:
  void judge_metrics();
  // Returns the bound by the network with these summers.
  fabric::StepBound bound_of(const plan::Fleet& fleet, const std::vector<std::string>& summer_nodes) const;

  const Settings& settings_;
  const Job& job_;
  plan::Fleet fleet_;
  std::vector<std::string> summer_nodes_;     // of the summers in fleet_
  std::vector<uint32_t> indices_;             // index of each summer in fleet_
  std::optional<fabric::StepBound> network_;  // with a fabric
  std::optional<fabric::Nearness> near_;
  double bytes_ = 0;
  double bound_ = 0;
  double step_seconds_ = 0, exposed_seconds_ = 0;
  std::optional<Code> unknown_;
};

}  // namespace gleaner::autoscale
