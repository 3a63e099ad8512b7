// What each member's link is worth to a plan, from annotations and profiles.
#pragma once

#include <vector>

#include "operator/reconcile/decide.h"

namespace gleaner::reconcile {

// Bits per second each way of this pod: the smaller of its annotation and its node's; 0: neither is known.
double member_bits_per_second(const Observed& observed, const PodView& pod);

// The same for all; 0 for a null pod.
std::vector<double> known_bits_per_second(const Observed& observed, const std::vector<const PodView*>& pods);

// For all, with a stand-in for what is not known: the median of what is, or coordinator::kAssumedBitsPerSecond.
std::vector<double> assumed_bits_per_second(const Observed& observed, const std::vector<const PodView*>& pods);

}  // namespace gleaner::reconcile
