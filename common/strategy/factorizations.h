// best_factorizations() finds the stages with which BlueConnect is fast on a network, without a search through all
// ordered factorizations of the number of ranks, which can be thousands. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace gleaner::strategy {

// Returns the seconds of a stage among groups of `factor` ranks, which the ranks' earlier stages, whose factors have
// the product `below`, precede: one term of BlueConnect's Eq. 7.
using StageSeconds = std::function<double(uint32_t below, uint32_t factor)>;

// Returns the `most` ordered factorizations of `ranks` into two or more factors of 2 and more with the least sums of
// their stages' seconds; the least first.
//
// The time of a stage depends only on `below` and `factor`. So a factorization is a path from 1 to `ranks` over the
// divisors of `ranks`, and the best ones are its shortest paths. Calls `seconds` once for each pair of divisors of
// which one divides the other.
std::vector<std::vector<uint32_t>> best_factorizations(uint32_t ranks, size_t most, const StageSeconds& seconds);

}  // namespace gleaner::strategy
