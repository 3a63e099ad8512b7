// The racks that probes suggest to a command.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/topology/topology.h"

namespace gleaner::cli {

// Returns the topology of strategy::tree_of_probes(). Says on standard error, as `command`, if groups are not sure.
absl::StatusOr<topology::Topology> probed_tree(const topology::Topology& probes, uint32_t workers,
                                               absl::string_view command);

}  // namespace gleaner::cli
