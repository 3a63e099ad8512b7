// Counts the uplinks of the cluster's groups in what `gleaner explain` tells about a running job. Pure.
//
// The figures come from the job's ReductionPlan and from the cluster's Topology. A step takes as long as the busiest
// link of the network of the plan's members (plan::busiest_link(); BytePS §4.1). Its bound in the plan counts uplinks
// as they were when the job's attempt began.
#pragma once

#include "absl/status/statusor.h"
#include "cli/cluster/explain_view.h"
#include "common/fabric/fabric.h"

namespace gleaner::cli {

// Sets job.uplink. If an uplink takes longer than every link of a machine, it also sets the time of a step and the
// limit; if uplinks of known bandwidth part the machines, the best place of one more summer and the bound with it.
// Nothing is set where the speed of a link is unknown, or schedules sum tensors. `fabric`: an error is the reason for
// which no Topology could be read.
void count_uplinks(const absl::StatusOr<fabric::Fabric>& fabric, ExplainedJob& job);

}  // namespace gleaner::cli
