// check_hosts() checks a map from ranks or members to hosts. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/topology/topology.h"

namespace gleaner::netsim {

// Returns OK if `host_of` has `count` different hosts of the topology. InvalidArgument names the entry that is wrong;
// `noun` says what has a host, as "rank".
absl::Status check_hosts(absl::string_view noun, const std::vector<uint32_t>& host_of, size_t count,
                         const topology::Topology& topology);

}  // namespace gleaner::netsim
