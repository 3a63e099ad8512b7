// Generated measurements of latencies between hosts in rows of racks, with the errors that probes in a cloud have.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/ranks/embedding.h"
#include "common/ranks/random.h"

namespace gleaner::ranks {

struct NoisyRacks {
  // 64 hosts in a random order: 2 rows of 4 racks of 8 hosts. Latencies are 10 µs within a rack, 14 µs within a row and
  // 18 µs beyond. Each measurement is off by 25 % (standard deviation), each host adds 0 to 4 µs of its own, and one
  // measurement in ten meets other traffic, which adds up to 30 µs.
  explicit NoisyRacks(uint64_t seed) : distances(64) {
    Random random(seed);
    std::vector<uint32_t> slots(64);
    for (uint32_t i = 0; i < 64; ++i) slots[i] = i;
    random.shuffle(slots);
    std::vector<double> own;
    for (const uint32_t slot : slots) {
      places.push_back({slot / 32, slot / 8 % 4, slot % 8});
      rack.push_back(slot / 8);
      own.push_back(4 * random.uniform());
    }
    for (uint32_t a = 0; a < 64; ++a) {
      for (uint32_t b = 0; b < a; ++b) {
        const double true_latency = rack[a] == rack[b] ? 10 : places[a][0] == places[b][0] ? 14 : 18;
        double measured = true_latency * std::max(0.2, 1 + 0.25 * random.normal()) + own[a] + own[b];
        if (random.below(10) == 0) measured += 30 * random.uniform();
        distances.at(a, b) = distances.at(b, a) = measured;
      }
    }
  }

  std::vector<std::vector<uint32_t>> places;  // {row, rack, slot}
  std::vector<uint32_t> rack;                 // of all racks, by host
  Distances distances;
};

}  // namespace gleaner::ranks
