// Reads the machine from moment to moment, and what was found out about it from time to time.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/discover/machine.h"
#include "agent/discover/use.h"
#include "agent/probe/speed.h"
#include "agent/publish/node.h"
#include "agent/publish/pods.h"
#include "agent/spare/sample.h"

namespace gleaner::agent {

// One thread.
class Sampler {
 public:
  Sampler(discover::MachineSource source, const std::string& cgroup_root);

  // NICs, GPUs and processors, anew.
  absl::Status discover();
  const discover::Machine& machine() const { return machine_; }

  // What NIC and kernel say of the speed; flag, label and measurement are for the caller to add.
  probe::SpeedClaims claims() const;

  // `at` is monotonic time. A node that allows more than the machine has is not believed.
  spare::Sample sample(absl::Duration at, const publish::NodeState& node, const std::vector<publish::PodOnNode>& pods,
                       const probe::Speed& speed);

 private:
  const discover::MachineSource source_;
  const std::string cgroup_root_;
  discover::PodFinder pods_;
  discover::Machine machine_;
};

}  // namespace gleaner::agent
