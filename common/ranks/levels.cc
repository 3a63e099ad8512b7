#include "common/ranks/levels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "common/base/median.h"

namespace gleaner::ranks {
namespace {

constexpr double kDeviationOfMedian = 1.4826;  // of a normal distribution, in medians of absolute errors
const double kNormal = 0.5 * std::log(2 * std::numbers::pi);

struct Pair {
  double distance;
  bool is_near;
};

// Fits levels and the deviation to pairs that are no outliers, from a first guess.
Fit settle(const std::vector<Pair>& pairs, Levels levels) {
  for (int round = 0; round < 4; ++round) {
    double sum[2] = {}, squares = 0;
    size_t count[2] = {};
    const double most =
        levels.deviation * std::sqrt(2 * std::max(1.0, levels.outlier_nats - std::log(levels.deviation) - kNormal));
    for (const Pair& pair : pairs) {
      const double error = pair.distance - (pair.is_near ? levels.near : levels.far);
      if (std::abs(error) > most) continue;
      sum[pair.is_near] += error;
      squares += error * error;
      ++count[pair.is_near];
    }
    const auto inliers = static_cast<double>(count[0] + count[1]);
    for (const bool is_near : {false, true}) {
      if (count[is_near] == 0) continue;
      const double shift = sum[is_near] / static_cast<double>(count[is_near]);
      (is_near ? levels.near : levels.far) += shift;
      squares -= shift * sum[is_near];
    }
    levels.deviation = inliers > 0 ? std::max(kLeastDeviation, std::sqrt(std::max(0.0, squares) / inliers)) : 1;
  }
  Fit fit{levels};
  for (const Pair& pair : pairs) fit.nats += levels.nats(pair.distance, pair.is_near ? levels.near : levels.far);
  return fit;
}

}  // namespace

LogDistances::LogDistances(const Distances& distances)
    : hosts_(distances.hosts()), values_(size_t{hosts_} * hosts_, 0) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (uint32_t a = 0; a < hosts_; ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      const double value = std::log((distances.at(a, b) + distances.at(b, a)) / 2);
      values_[size_t{a} * hosts_ + b] = values_[size_t{b} * hosts_ + a] = value;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  outlier_nats_ = std::log(std::max(most - least, kLeastDeviation) / kOutliers);
}

double Levels::nats(double distance, double level) const {
  const double error = (distance - level) / deviation;
  return std::min(error * error / 2 + std::log(deviation) + kNormal, outlier_nats);
}

Fit fit_levels(const LogDistances& distances, const IsNear& is_near) {
  std::vector<Pair> pairs;
  std::vector<double> near, far, errors;
  for (uint32_t a = 0; a < distances.hosts(); ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      pairs.push_back({distances.at(a, b), is_near(a, b)});
      (pairs.back().is_near ? near : far).push_back(pairs.back().distance);
    }
  }
  Levels levels{.near = upper_median(std::move(near)),
                .far = upper_median(std::move(far)),
                .outlier_nats = distances.outlier_nats()};
  double squares = 0;
  for (const Pair& pair : pairs) {
    errors.push_back(std::abs(pair.distance - (pair.is_near ? levels.near : levels.far)));
    squares += errors.back() * errors.back();
  }
  const auto count = static_cast<double>(std::max<size_t>(1, pairs.size()));
  levels.deviation = std::max(kLeastDeviation, kDeviationOfMedian * upper_median(std::move(errors)));
  Fit best = settle(pairs, levels);
  levels.deviation = std::max(kLeastDeviation, std::sqrt(squares / count));
  const Fit other = settle(pairs, levels);
  return other.nats < best.nats ? other : best;
}

}  // namespace gleaner::ranks
