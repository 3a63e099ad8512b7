// Measures how well distances or groups agree with the true places of hosts. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ranks/embedding.h"

namespace gleaner::ranks {

// Returns the physical affinity inference accuracy, PAIA (Luo §6.2.5), from 0 to 1: of all triplets of hosts (a, b, c)
// where a and b differ in how many leading numbers of their place they share with c, the part in which the host that
// shares more is measured nearer to c. A random guess has 0.5. `places` are those of topology::Host. InvalidArgument:
// there is not one place for each host, or no such triplet.
absl::StatusOr<double> affinity_accuracy(const Distances& distances, const std::vector<std::vector<uint32_t>>& places);

// Returns the adjusted mutual information, AMI, of two groupings of the same hosts, each the group of each host: 1 if
// they are equal, about 0 if they are independent, possibly below. Source: Vinh, Epps and Bailey 2010, with the mean of
// both entropies in the denominator. Requires equal sizes, above 0.
double adjusted_mutual_information(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b);

}  // namespace gleaner::ranks
