// Which hosts of a network are the workers and the summers of a job. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/topology/topology.h"

namespace gleaner::strategy {

// Returns OK if the topology has a host for each member, else InvalidArgument.
absl::Status check_room(const topology::Topology& topology, uint32_t workers, uint32_t summers);

// Returns the topology with its hosts in another order: workers, summers, then those that take no part. Each rack
// (rack_times.h) has as many workers as its size allows, with consecutive numbers, and summers follow where most hosts
// are left, one after the other. Without racks the order stays. InvalidArgument: as check_room().
absl::StatusOr<topology::Topology> balanced(const topology::Topology& topology, uint32_t workers, uint32_t summers);

// Returns who is where, for people: "rack-0: workers 0 to 7, summers 0, 2, 4; rack-1: ...". Hosts are as above. Empty:
// the network has no racks.
std::string describe_places(const topology::Topology& topology, uint32_t workers, uint32_t summers);

}  // namespace gleaner::strategy
