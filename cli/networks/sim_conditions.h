// The flags of `gleaner sim` that say what else happens in the network: --background and --fail. Errors are
// InvalidArgument and name the flag.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/flags/command.h"
#include "common/netsim/flow_network.h"

namespace gleaner::cli {

struct ConditionFlags {
  std::vector<std::string> background;  // FROM:TO:RATE
  std::vector<std::string> failures;    // A:B@TIME
};
void add_condition_flags(flags::Command& command, ConditionFlags& flags);

// Returns the conditions; the flags name hosts and switches of this topology. A failure concerns all links between its
// two ends.
absl::StatusOr<netsim::Conditions> conditions_of(const ConditionFlags& flags, const topology::Topology& topology);

}  // namespace gleaner::cli
