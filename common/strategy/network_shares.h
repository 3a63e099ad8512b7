// network_shares() finds the shares of the members of a plan by the network of their job. Where a link between switches
// binds, they differ from those of the members' bandwidths alone (BytePS §4.1), which the planner uses elsewhere. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/plan/plan.h"
#include "common/strategy/rank_maps.h"

namespace gleaner::strategy {

// Returns the fraction of the stream that each member should own, workers first, so that the busiest link takes the
// least time (plan::shares_with_uplinks()). `summers_at`: as for network_of(). Empty, so that the bandwidths alone
// decide: the members are on one switch, or the links of their network are no tree. For other networks the shares would
// be a linear program, too slow for an event of a coordinator.
std::vector<double> network_shares(const plan::Plan& plan, double push_ratio, const JobNetwork& network,
                                   std::span<const uint32_t> summers_at);

}  // namespace gleaner::strategy
