#include "common/topology/overheads.h"

#include <algorithm>
#include <numeric>

namespace gleaner::topology {

std::vector<double> host_overheads(std::span<const double> of_pairs, size_t hosts) {
  if (hosts == 2) return {of_pairs[1], of_pairs[1]};
  std::vector<double> sums(hosts);  // S
  for (size_t i = 0; i < hosts; ++i) {
    for (size_t j = i + 1; j < hosts; ++j) {
      sums[i] += 2 * of_pairs[i * hosts + j];
      sums[j] += 2 * of_pairs[i * hosts + j];
    }
  }
  const auto n = static_cast<double>(hosts);
  const double all = std::accumulate(sums.begin(), sums.end(), 0.0) / (2 * (n - 1));  // X
  for (double& value : sums) value = std::max(0.0, (value - all) / (n - 2));
  return sums;
}

}  // namespace gleaner::topology
