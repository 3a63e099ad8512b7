#include "common/ranks/embedding.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ranks/random.h"

namespace gleaner::ranks {
namespace {

absl::Status check(const Distances& distances, const EmbeddingOptions& options) {
  if (!(options.alpha >= 1 && options.alpha <= 2)) {
    return absl::InvalidArgumentError(absl::StrCat("alpha is ", options.alpha, "; give a number from 1 to 2"));
  }
  if (options.dimensions < 1 || options.dimensions > 16) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", options.dimensions, " dimensions; give 1 to 16"));
  }
  for (uint32_t a = 0; a < distances.hosts(); ++a) {
    for (uint32_t b = 0; b < distances.hosts(); ++b) {
      const double value = distances.at(a, b);
      if (a == b || (std::isfinite(value) && value >= 0)) continue;
      return absl::InvalidArgumentError(absl::StrCat("the distance from host ", a, " to host ", b, " is ", value,
                                                     "; distances are 0 or more, and finite"));
    }
  }
  return absl::OkStatus();
}

// The Adam algorithm (Kingma and Ba 2015, Algorithm 1) with its usual constants.
class Adam {
 public:
  explicit Adam(size_t size) : mean_(size, 0), square_(size, 0) {}

  void step(std::span<const double> gradient, double rate, std::vector<double>& values) {
    mean_power_ *= kMean;
    square_power_ *= kSquare;
    for (size_t i = 0; i < values.size(); ++i) {
      mean_[i] = kMean * mean_[i] + (1 - kMean) * gradient[i];
      square_[i] = kSquare * square_[i] + (1 - kSquare) * gradient[i] * gradient[i];
      values[i] -= rate * (mean_[i] / (1 - mean_power_)) / (std::sqrt(square_[i] / (1 - square_power_)) + 1e-8);
    }
  }

 private:
  static constexpr double kMean = 0.9, kSquare = 0.999;
  std::vector<double> mean_, square_;
  double mean_power_ = 1, square_power_ = 1;
};

// The distances of pairs, of which the mean is 1.
class Problem {
 public:
  Problem(const Distances& distances, const EmbeddingOptions& options)
      : hosts_(distances.hosts()), dimensions_(options.dimensions), alpha_(options.alpha), heights_(options.heights) {
    double sum = 0;
    for (uint32_t a = 1; a < hosts_; ++a) {
      for (uint32_t b = 0; b < a; ++b) {
        wanted_.push_back((distances.at(a, b) + distances.at(b, a)) / 2);
        sum += wanted_.back();
      }
    }
    unit_ = sum > 0 ? sum / static_cast<double>(wanted_.size()) : 1;
    for (double& value : wanted_) value /= unit_;
  }

  double unit() const { return unit_; }
  size_t variables() const { return size_t{hosts_} * (dimensions_ + 1); }

  // Sets the gradient of Eq. 4.1 with respect to all points, then all heights.
  void gradient(const std::vector<double>& values, std::vector<double>& gradient) const {
    std::fill(gradient.begin(), gradient.end(), 0);
    const size_t first_height = size_t{hosts_} * dimensions_;
    size_t pair = 0;
    for (uint32_t a = 1; a < hosts_; ++a) {
      const double* point = &values[size_t{a} * dimensions_];
      for (uint32_t b = 0; b < a; ++b, ++pair) {
        const double* other = &values[size_t{b} * dimensions_];
        double square = 1e-12;  // keeps the derivative finite where two points are one
        for (uint32_t i = 0; i < dimensions_; ++i) square += (point[i] - other[i]) * (point[i] - other[i]);
        const double power = alpha_ == 2 ? square : std::pow(square, alpha_ / 2);
        const double height = heights_ ? values[first_height + a] + values[first_height + b] : 0;
        const double error = 2 * (power + height - wanted_[pair]);
        // d(power)/d(point[i]) = alpha · power / square · (point[i] - other[i])
        const double factor = error * alpha_ * power / square;
        for (uint32_t i = 0; i < dimensions_; ++i) {
          gradient[size_t{a} * dimensions_ + i] += factor * (point[i] - other[i]);
          gradient[size_t{b} * dimensions_ + i] -= factor * (point[i] - other[i]);
        }
        if (!heights_) continue;
        gradient[first_height + a] += error;
        gradient[first_height + b] += error;
      }
    }
  }

 private:
  const uint32_t hosts_, dimensions_;
  const double alpha_;
  const bool heights_;
  std::vector<double> wanted_;  // by pair
  double unit_ = 1;
};

}  // namespace

double Embedding::square(uint32_t a, uint32_t b) const {
  double sum = 0;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const double difference = points[size_t{a} * dimensions + i] - points[size_t{b} * dimensions + i];
    sum += difference * difference;
  }
  return sum;
}

Distances Embedding::distances(double alpha) const {
  Distances distances(hosts);
  for (uint32_t a = 0; a < hosts; ++a) {
    for (uint32_t b = 0; b < hosts; ++b) distances.at(a, b) = std::pow(square(a, b), alpha / 2);
  }
  return distances;
}

absl::StatusOr<Embedding> embed(const Distances& distances, const EmbeddingOptions& options) {
  GLN_RETURN_IF_ERROR(check(distances, options));
  const Problem problem(distances, options);
  const size_t first_height = size_t{distances.hosts()} * options.dimensions;
  std::vector<double> values(problem.variables(), 0), gradient(problem.variables());
  Random random(options.seed);
  for (size_t i = 0; i < first_height; ++i) values[i] = 0.5 * random.normal();
  Adam adam(values.size());
  for (uint32_t step = 0; step < options.steps; ++step) {
    problem.gradient(values, gradient);
    // The rate falls to 0, so that the last steps settle.
    adam.step(gradient, 0.05 * (1 - static_cast<double>(step) / options.steps), values);
    for (size_t i = first_height; i < values.size(); ++i) values[i] = std::max(values[i], 0.0);
  }

  Embedding embedding{distances.hosts(), options.dimensions, {}, {}};
  const double scale = std::pow(problem.unit(), 1 / options.alpha);
  for (size_t i = 0; i < first_height; ++i) embedding.points.push_back(values[i] * scale);
  for (size_t i = first_height; i < values.size(); ++i) embedding.heights.push_back(values[i] * problem.unit());
  return embedding;
}

}  // namespace gleaner::ranks
