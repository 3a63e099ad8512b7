#include "common/netsim/fair_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gleaner::netsim {
namespace {

using ::testing::DoubleNear;
using ::testing::UnorderedElementsAre;
using Path = std::vector<uint32_t>;

TEST(FairRates, TwoFlowsShareAChannel) {
  FairRates rates({10});
  const uint32_t a = rates.add(Path{0}), b = rates.add(Path{0});
  EXPECT_THAT(rates.update(), UnorderedElementsAre(a, b));
  EXPECT_EQ(rates.rate(a), 5);
  EXPECT_EQ(rates.rate(b), 5);
  rates.remove(a);
  EXPECT_THAT(rates.update(), UnorderedElementsAre(b));
  EXPECT_EQ(rates.rate(b), 10);
}

// One long flow over three channels, and one flow on each channel. The long flow's bottleneck is the channel with two
// short flows.
TEST(FairRates, ParkingLot) {
  FairRates rates({1, 1, 1});
  const uint32_t lengthwise = rates.add(Path{0, 1, 2});
  const uint32_t first = rates.add(Path{0}), second = rates.add(Path{1}), third = rates.add(Path{1});
  const uint32_t last = rates.add(Path{2});
  rates.update();
  EXPECT_THAT(rates.rate(lengthwise), DoubleNear(1.0 / 3, 1e-9));
  EXPECT_THAT(rates.rate(first), DoubleNear(2.0 / 3, 1e-9));
  EXPECT_THAT(rates.rate(second), DoubleNear(1.0 / 3, 1e-9));
  EXPECT_THAT(rates.rate(third), DoubleNear(1.0 / 3, 1e-9));
  EXPECT_THAT(rates.rate(last), DoubleNear(2.0 / 3, 1e-9));
}

// A change at one end of a chain reaches the flow at the other end: a gets more, so b less, so c more.
TEST(FairRates, ChangesReachDistantFlows) {
  FairRates rates({4, 10, 16});
  const uint32_t gone = rates.add(Path{0});
  const uint32_t a = rates.add(Path{0, 1}), b = rates.add(Path{1, 2}), c = rates.add(Path{2});
  rates.update();
  EXPECT_THAT(rates.rate(a), DoubleNear(2, 1e-9));
  EXPECT_THAT(rates.rate(b), DoubleNear(8, 1e-9));
  EXPECT_THAT(rates.rate(c), DoubleNear(8, 1e-9));
  rates.remove(gone);
  rates.update();
  EXPECT_THAT(rates.rate(a), DoubleNear(4, 1e-9));
  EXPECT_THAT(rates.rate(b), DoubleNear(6, 1e-9));
  EXPECT_THAT(rates.rate(c), DoubleNear(10, 1e-9));
}

TEST(FairRates, LeavesFarFlowsAlone) {
  FairRates rates({1, 1});
  rates.add(Path{0});
  rates.add(Path{1});
  rates.update();
  const uint64_t before = rates.computed();
  rates.add(Path{1});
  rates.update();
  EXPECT_EQ(rates.computed() - before, 2);
}

// Computes all rates anew, one bottleneck after the other, by definition.
std::vector<double> water_filling(std::vector<double> left, const std::vector<Path>& paths,
                                  const std::vector<double>& weights) {
  std::vector<double> rates(paths.size(), -1);
  for (;;) {
    double level = std::numeric_limits<double>::infinity();
    std::vector<double> open(left.size(), 0);
    for (size_t f = 0; f < paths.size(); ++f) {
      for (const uint32_t c : paths[f]) open[c] += rates[f] < 0 ? weights[f] : 0;
    }
    size_t least = left.size();
    for (size_t c = 0; c < left.size(); ++c) {
      if (open[c] == 0 || left[c] / open[c] >= level) continue;
      level = left[c] / open[c];
      least = c;
    }
    if (least == left.size()) return rates;
    for (size_t f = 0; f < paths.size(); ++f) {
      if (rates[f] >= 0 || std::ranges::find(paths[f], least) == paths[f].end()) continue;
      rates[f] = level * weights[f];
      for (const uint32_t c : paths[f]) left[c] -= rates[f];
    }
  }
}

class FairRatesSeeds : public ::testing::TestWithParam<int> {};

// After any sequence of flows that come and go, the rates equal those of a computation from nothing.
TEST_P(FairRatesSeeds, EqualWaterFilling) {
  std::mt19937 random(GetParam());
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  std::vector<double> capacities;
  for (int channels = pick(2, 30); channels > 0; --channels)
    capacities.push_back(pick(1, 4) * (pick(0, 1) ? 1.0 : 0.7));
  FairRates rates(capacities);
  std::vector<uint32_t> flows;
  std::vector<Path> paths;
  std::vector<double> weights;
  for (int round = 0; round < 60; ++round) {
    for (int changes = pick(1, 4); changes > 0; --changes) {
      if (!flows.empty() && pick(0, 4) < 2) {
        const int gone = pick(0, static_cast<int>(flows.size()) - 1);
        rates.remove(flows[gone]);
        flows.erase(flows.begin() + gone);
        paths.erase(paths.begin() + gone);
        weights.erase(weights.begin() + gone);
        continue;
      }
      Path all(capacities.size());
      for (size_t c = 0; c < all.size(); ++c) all[c] = static_cast<uint32_t>(c);
      std::ranges::shuffle(all, random);
      all.resize(std::min<size_t>(all.size(), pick(1, 5)));
      paths.push_back(all);
      weights.push_back(pick(0, 1) ? 1 : pick(1, 1000));
      flows.push_back(rates.add(all, weights.back()));
    }
    rates.update();
    const std::vector<double> expected = water_filling(capacities, paths, weights);
    for (size_t f = 0; f < flows.size(); ++f) {
      ASSERT_NEAR(rates.rate(flows[f]), expected[f], 1e-8 * weights[f]) << "round " << round << ", flow " << f;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, FairRatesSeeds, ::testing::Range(0, 100));

}  // namespace
}  // namespace gleaner::netsim
