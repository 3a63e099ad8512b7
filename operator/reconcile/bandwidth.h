// Functions that return the bandwidths of the members' links, from pod annotations and node profiles.
#pragma once

#include <vector>

#include "operator/reconcile/observation.h"
#include "operator/reconcile/steps.h"

namespace gleaner::reconcile {

// Returns the bandwidth of this pod's link in bits per second, each way: the smaller of its annotation and the speed of
// its NICs (worker_nics.h); a summer's is the node's default route. If only one of them is known, returns that one; if
// none is, returns 0.
double member_bits_per_second(const Observation& observation, const PodView& pod);

// Returns member_bits_per_second() of each pod; 0 for a null pod.
std::vector<double> known_bits_per_second(const Observation& observation, const std::vector<const PodView*>& pods);

// Returns known_bits_per_second() with every unknown value replaced by the median of the known ones, or by
// coordinator::kAssumedBitsPerSecond if none is known.
std::vector<double> assumed_bits_per_second(const Observation& observation, const std::vector<const PodView*>& pods);

// Returns the members of the session whose bandwidth differs so much from the plan's that a new plan is worthwhile.
// `workers`: by index, null where there is no pod. The session must exist.
std::vector<MemberBandwidth> changed_bandwidths(const Observation& observation,
                                                const std::vector<const PodView*>& workers);

}  // namespace gleaner::reconcile
