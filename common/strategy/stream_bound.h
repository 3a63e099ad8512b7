// The bound of a step by the strategies in force. Pure.
//
// Tensors follow each other through the links, so large ones take the time in which the busiest channel moves them.
// This is the `stream` of a strategy's model (candidates.h): for owners the bound of common/plan/model.h, or of
// common/plan/uplinks.h, for a schedule the load of its busiest channel. Where several strategies are in force, the
// bound is their mean by the bytes of their tensors. It is below the modelled time of a step (step.h) by latencies and
// the first partitions.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "common/strategy/rank_maps.h"

namespace gleaner::strategy {

struct StreamBound {
  double seconds_per_byte = 0;                  // of a step's gradient
  double seconds_per_byte_without_summers = 0;  // with the same strategies and no CPU summers
};

// Returns the bound of a plan, which without bytes in its tensors is that of owners. `known`, `summers_at`: as in
// network_of(). Links between switches bind owners, too, if the links of `known` form a tree. For other networks the
// bound of owners is that of the members' own links, since a linear program is too slow for an event of a coordinator.
// InvalidArgument: a schedule of the plan does not serve its workers, or the network has no host for a member.
absl::StatusOr<StreamBound> stream_bound(const plan::Plan& plan, const JobNetwork* known = nullptr,
                                         std::span<const uint32_t> summers_at = {});

}  // namespace gleaner::strategy
