// The rank map of `gleaner sim --rank-map best`.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/ranks/rank_map.h"
#include "common/topology/network.h"

namespace gleaner::cli {

// The most messages that a search for a map simulates, about 5 s on one core.
inline constexpr uint64_t kMostTimedMessages = 4'000'000;

// Returns the map that `gleaner ranks` finds for this seed, or that of HDRM if the topology has too many hosts for a
// search. `searching`: called from time to time with the part of the search that is done. InvalidArgument: the topology
// has too many hosts, and HDRM does not apply.
absl::StatusOr<ranks::RankMap> best_rank_map(const collective::Schedule& schedule, const topology::Network& network,
                                             uint64_t bytes, uint64_t seed,
                                             const std::function<void(double)>& searching);

}  // namespace gleaner::cli
