// Functions that make the profile's status, and decide whether it has changed enough to be written. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/discover/machine.h"
#include "agent/probe/speed.h"
#include "agent/spare/estimator.h"
#include "common/api/node_profile.h"

namespace gleaner::publish {

// Returns the status. Conditions that have not changed keep their transition time from `before`. Ready is false until
// the use of the CPUs has been measured.
api::NodeProfileStatus make_status(const discover::Machine& machine, const spare::Estimate& estimate,
                                   const probe::Speed& speed, const std::string& version,
                                   const std::vector<api::Condition>& before, absl::Time now);

// Returns whether a field other than the current use has changed, or a spare resource has changed noticeably: by more
// than a tenth of the machine's resource, or to less than half or more than twice of its value. Changes below a
// hundredth of the machine's resource do not count. A latency changes noticeably by a quarter, and 5 us at least,
// a measured bandwidth by a tenth.
bool differs_noticeably(const api::NodeProfileStatus& published, const api::NodeProfileStatus& now);

}  // namespace gleaner::publish
