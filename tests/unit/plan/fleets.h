// Makes random fleets for property tests: with equal and unequal bandwidths, slow summers, many summers, a single
// worker.
#pragma once

#include <cmath>
#include <random>

#include "common/plan/model.h"

namespace gleaner::plan {

inline constexpr double kGbit = 1e9;  // bits

inline Fleet even_fleet(uint32_t n, uint32_t k, double bits_per_second) {
  return {std::vector<double>(n, bits_per_second), std::vector<double>(k, bits_per_second)};
}

inline Fleet random_fleet(std::mt19937_64& random, uint32_t most_workers = 40) {
  const auto pick = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  const uint32_t n = std::uniform_int_distribution(1u, most_workers)(random);
  const uint32_t k = std::uniform_int_distribution(0u, most_workers + most_workers / 2)(random);
  const double spread = pick(0, 1) < 0.3 ? 0 : pick(0, 3);  // most of log(fastest / slowest worker)
  Fleet fleet = even_fleet(n, k, 25e9);
  for (double& bandwidth : fleet.worker_bits_per_second) bandwidth *= std::exp(pick(-spread / 2, spread / 2));
  const double summers = std::exp(pick(-3, 1));
  for (double& bandwidth : fleet.summer_bits_per_second) bandwidth *= summers * std::exp(pick(-spread, spread));
  return fleet;
}

}  // namespace gleaner::plan
