// subset() leaves hosts out of a topology. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "common/topology/topology.h"

namespace gleaner::topology {

// Returns the topology with these hosts, in this order, and all switches. Links of other hosts are left out. Requires
// different hosts of the topology. InvalidArgument: as Topology::make(), for example if the hosts reach each other only
// through other hosts.
absl::StatusOr<Topology> subset(const Topology& topology, std::span<const uint32_t> hosts);

}  // namespace gleaner::topology
