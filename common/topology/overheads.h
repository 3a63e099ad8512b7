// host_overheads() divides the overheads of pairs of hosts among the hosts. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gleaner::topology {

// Returns the overhead of each host for a message, in the unit of `of_pairs`; 0 in place of a negative one. A
// measurement between hosts i and j gives the mean of their overheads, of_pairs[i·hosts + j], so hosts have those that
// fit all pairs best by least squares. For example, the means 3, 4 and 5 of the pairs 0-1, 0-2 and 1-2 give the
// overheads 2, 4 and 6. The two hosts of a single pair have the pair's. Only the elements with i < j are read. Requires
// two hosts or more.
//
// With S_i twice the sum of the pairs of host i, and X the sum of all S_i over 2 (n - 1), the least squares of n hosts
// are x_i = (S_i - X) / (n - 2). X is the sum of all overheads, and S_i = (n - 1) x_i + X - x_i.
std::vector<double> host_overheads(std::span<const double> of_pairs, size_t hosts);

}  // namespace gleaner::topology
