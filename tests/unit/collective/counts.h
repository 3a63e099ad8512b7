// The numbers of ranks with which the tests of schedules run.
#pragma once

#include <cstdint>
#include <vector>

namespace gleaner::collective {

inline std::vector<uint32_t> tested_counts() {
  std::vector<uint32_t> counts;
  for (uint32_t ranks = 1; ranks <= 33; ++ranks) counts.push_back(ranks);
  counts.insert(counts.end(), {64, 96, 128});
  return counts;
}

}  // namespace gleaner::collective
