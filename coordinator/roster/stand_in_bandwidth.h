// The bandwidth that is assumed for links of unknown bandwidth. Pure.
#pragma once

#include <utility>
#include <vector>

#include "common/base/median.h"
#include "coordinator/roster/options.h"

namespace gleaner::coordinator {

// Returns the median of the known bandwidths of other links, or kAssumedBitsPerSecond if none is known.
inline double stand_in_bits_per_second(std::vector<double> known) {
  return known.empty() ? kAssumedBitsPerSecond : upper_median(std::move(known));
}

}  // namespace gleaner::coordinator
