// Sampler takes samples of the machine, and repeats discovery from time to time.
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

// Used by one thread.
class Sampler {
 public:
  Sampler(discover::MachineSource source, const std::string& cgroup_root);

  // Reads NICs, GPUs and processors again.
  absl::Status discover();
  const discover::Machine& machine() const { return machine_; }

  // Returns the speeds that the NIC and the kernel report. The caller adds flag, label and measurement.
  probe::SpeedClaims claims() const;

  // Takes a sample. `at` is monotonic time. Allocatable resources above those of the machine are reduced to these.
  spare::Sample sample(absl::Duration at, const publish::NodeState& node, const std::vector<publish::PodOnNode>& pods,
                       const probe::Speed& speed);

 private:
  const discover::MachineSource source_;
  const std::string cgroup_root_;
  discover::PodFinder pods_;
  discover::Machine machine_;
};

}  // namespace gleaner::agent
