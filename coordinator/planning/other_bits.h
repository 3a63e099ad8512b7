// The two classes of bits (plan::Bits) as Auto sees them: which strategies each of them may use, and what a step takes
// in each. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "common/plan/plan.h"
#include "common/strategy/candidates.h"
#include "common/strategy/models.h"
#include "coordinator/planning/strategy_change.h"

namespace gleaner::coordinator {

// Returns the candidates that a plan of this class may use, in their order: those of class RankOrder, or all.
std::vector<strategy::Candidate> candidates_of(std::span<const strategy::Candidate> all, plan::Bits bits);

// Returns the modelled times of a step for the tensors of the plan in its class and in the other one. `all` has the
// candidates of both classes in the network of the plan. None: a bandwidth is unknown, so that times are placeholders,
// or no tensor moves whose strategy Auto chooses.
std::optional<OtherBits> compare_bits(const plan::Plan& plan, const strategy::Models& all);

}  // namespace gleaner::coordinator
