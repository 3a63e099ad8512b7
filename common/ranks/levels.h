// The levels of near and far distances, and how well they explain each distance (near_groups.h). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/ranks/embedding.h"

namespace gleaner::ranks {

inline constexpr double kOutliers = 0.05;         // the part of distances that may be anything
inline constexpr double kLeastDeviation = 0.005;  // half a percent: probes tell no smaller differences

// The logarithms of the distances of all pairs of hosts.
class LogDistances {
 public:
  // Requires positive distances, of which the two directions of a pair count as one by their mean.
  explicit LogDistances(const Distances& distances);

  uint32_t hosts() const { return hosts_; }
  size_t pairs() const { return size_t{hosts_} * (hosts_ - 1) / 2; }
  double at(uint32_t a, uint32_t b) const { return values_[size_t{a} * hosts_ + b]; }
  // Returns the cost of a distance that neither level explains, in nats.
  double outlier_nats() const { return outlier_nats_; }

 private:
  uint32_t hosts_;
  std::vector<double> values_;  // by two hosts
  double outlier_nats_ = 0;
};

using IsNear = std::function<bool(uint32_t, uint32_t)>;

// Two levels and their errors. A distance costs the negative logarithm of its likelihood.
struct Levels {
  double near = 0, far = 0, deviation = 1;
  double outlier_nats = 0;

  double nats(double distance, double level) const;
  // Returns what a pair of hosts gains if it is near: the cost of its distance if it is far, less that if it is near.
  double gain(double distance) const { return nats(distance, far) - nats(distance, near); }
};

struct Fit {
  Levels levels;
  double nats = 0;  // of all distances
};

// Returns the levels that explain the distances of near pairs and of the others best.
Fit fit_levels(const LogDistances& distances, const IsNear& is_near);

}  // namespace gleaner::ranks
