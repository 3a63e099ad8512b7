// A rank map says which host has which rank: host_of[rank] is a host's index in a topology. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace gleaner::ranks {

using RankMap = std::vector<uint32_t>;

// Returns the map that gives rank i to host i.
RankMap identity(uint32_t ranks);

// Returns the hosts of a map, then all others of 0 to `hosts` - 1, ascending. Requires check_map().
RankMap with_other_hosts(const RankMap& host_of, uint32_t hosts);

// Returns OK if the map has `ranks` ranks, each on a host of its own below `hosts`. InvalidArgument names the first
// rank that is wrong.
absl::Status check_map(const RankMap& host_of, uint32_t ranks, uint32_t hosts);

}  // namespace gleaner::ranks
