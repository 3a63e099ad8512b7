// Adds the links between switches to an explanation. The model is that of uplinks.h. Pure.
#pragma once

#include "absl/status/status.h"
#include "common/plan/explain.h"
#include "common/plan/plan.h"
#include "common/plan/uplinks.h"
#include "common/topology/topology.h"

namespace gleaner::plan {

// Replaces the times and bounds in `explanation`, which explains `plan`, by those of a network in which host i is the
// plan's member i. `loads` and `bound` are those of these members, for a vector of explanation.stream_bytes. Errors are
// those of bound_with_uplinks().
absl::Status explain_uplinks(const topology::Topology& topology, const LinkLoads& loads, const UplinkBound& bound,
                             const Plan& plan, Explanation& explanation);

}  // namespace gleaner::plan
