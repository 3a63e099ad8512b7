// The profile's status from what was found out, and whether it is worth writing. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/discover/machine.h"
#include "agent/probe/speed.h"
#include "agent/spare/estimator.h"
#include "operator/types/node_profile.h"

namespace gleaner::publish {

// Conditions keep their time of transition from `before`. Ready is false until the CPU's use has been measured.
types::NodeProfileStatus make_status(const discover::Machine& machine, const spare::Estimate& estimate,
                                     const probe::Speed& speed, const std::string& version,
                                     const std::vector<types::Condition>& before, absl::Time now);

// Anything but the use of the moment has changed, or what can be spared has by a tenth of what the machine has, or to
// less than half, or more than twice, of what it was.
bool differs_noticeably(const types::NodeProfileStatus& published, const types::NodeProfileStatus& now);

}  // namespace gleaner::publish
