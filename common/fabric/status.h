// status_of() makes the status of the Topology of a fabric. Pure.
#pragma once

#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/api/topology.h"
#include "common/fabric/fabric.h"
#include "common/fabric/near_nodes.h"

namespace gleaner::fabric {

// `uplinks`: those of the Topology's spec. `before`: the conditions of the status before. The conditions say what is
// assumed:
// - Ready is False with NoLabels if neither labels nor latencies tell nodes apart, so that all are taken to be on one
//   switch.
// - UplinksKnown is False with Assumed if the uplink of a group is taken to carry all that its nodes send, and with
//   NoSuchGroup if the spec states an uplink of a group that does not exist.
// - NodesMeasured is False with NoAnswer if no latency to some node is known, though others have some.
// - LatenciesAgree is False with Implausible if agents contradict each other, with LabelsContradict if nodes are near
//   those with other labels, and with Unsure if latencies differ too much.
// The last two are absent while no latency is known.
api::TopologyStatus status_of(const Fabric& fabric, const NearNodes& near, std::span<const api::StatedUplink> uplinks,
                              std::vector<api::Condition> before, absl::Time now);

}  // namespace gleaner::fabric
