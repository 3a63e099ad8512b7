#include "common/topology/overheads.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

namespace gleaner::topology {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

std::vector<double> means_of(const std::vector<double>& hosts) {
  std::vector<double> pairs;
  for (const double a : hosts) {
    for (const double b : hosts) pairs.push_back((a + b) / 2);
  }
  return pairs;
}

TEST(Overheads, MeansOfPairsTellHosts) {
  for (const std::vector<double>& hosts : {std::vector<double>{2, 4, 6}, {0, 0, 0, 0}, {5, 1, 0, 9, 2.5, 7}}) {
    EXPECT_THAT(host_overheads(means_of(hosts), hosts.size()), Pointwise(DoubleNear(1e-12), hosts));
  }
}

TEST(Overheads, HostsOfOnePairShareIt) {
  EXPECT_THAT(host_overheads(std::vector<double>{0, 3, 3, 0}, 2), ElementsAre(3, 3));
}

TEST(Overheads, AreNotNegative) {
  EXPECT_THAT(host_overheads(std::vector<double>{0, 1, 1, 1, 0, 9, 1, 9, 0}, 3), ElementsAre(0, 9, 9));
}

TEST(Overheads, FitMeasurementsWithErrorsBest) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> error(-1, 1);
  constexpr size_t kHosts = 7;
  std::vector<double> pairs = means_of({20, 21, 22, 23, 24, 25, 26});
  for (double& pair : pairs) pair += error(random);
  const auto misfit = [&](const std::vector<double>& hosts) {
    double sum = 0;
    for (size_t i = 0; i < kHosts; ++i) {
      for (size_t j = i + 1; j < kHosts; ++j) sum += std::pow((hosts[i] + hosts[j]) / 2 - pairs[i * kHosts + j], 2);
    }
    return sum;
  };
  const std::vector<double> best = host_overheads(pairs, kHosts);
  for (size_t host = 0; host < kHosts; ++host) {
    for (const double step : {-1e-3, 1e-3}) {
      std::vector<double> other = best;
      other[host] += step;
      EXPECT_GT(misfit(other), misfit(best));
    }
  }
}

}  // namespace
}  // namespace gleaner::topology
