// Tests that clocks which differ by hours and drift are related to each other from frames alone.
#include "cli/timeline/clocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace gleaner::cli {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Converts true time to the time that a clock shows.
struct Skew {
  int64_t offset = 0;
  double drift = 0;
  int64_t at(int64_t time) const {
    return time + offset + static_cast<int64_t>(std::llround(drift * static_cast<double>(time)));
  }
};

struct Network {
  std::vector<Skew> clocks;
  std::vector<Crossing> crossings;
  std::mt19937 random{1};

  // Sends frames both ways between a and b for `seconds`. Each takes at least `least_there` or `least_back` ns, and
  // some take much longer.
  void talk(uint32_t a, uint32_t b, int seconds, int64_t least_there, int64_t least_back) {
    std::exponential_distribution<double> more(1.0 / 200'000);
    for (int64_t time = 0; time < seconds * kSecond; time += kSecond / 200) {
      send(a, b, time, least_there + static_cast<int64_t>(more(random)));
      send(b, a, time + 1'000'000, least_back + static_cast<int64_t>(more(random)));
    }
  }
  void send(uint32_t from, uint32_t to, int64_t time, int64_t takes) {
    crossings.push_back({from, to, clocks[from].at(time), clocks[to].at(time + takes)});
  }
  std::vector<std::optional<ClockFit>> fit() const {
    return fit_clocks(static_cast<uint32_t>(clocks.size()), crossings);
  }
  // Returns how far apart the fits of two members put the same true moment.
  double error(const std::vector<std::optional<ClockFit>>& fits, uint32_t a, uint32_t b, int64_t time) const {
    return std::abs(static_cast<double>(fits[a]->common(clocks[a].at(time)) - fits[b]->common(clocks[b].at(time))));
  }
};

TEST(Clocks, OffsetsOfHoursAreFoundToWithinTheUncertainty) {
  Network network{{{0}, {-7200 * kSecond}, {86'400 * kSecond + 12'345}}, {}};
  network.talk(0, 2, 2, 50'000, 50'000);
  // One way takes longer. That can't be detected, and is covered by the uncertainty.
  network.talk(1, 2, 2, 50'000, 80'000);
  const auto fits = network.fit();
  for (const uint32_t member : {1u, 2u}) {
    ASSERT_TRUE(fits[member].has_value());
    EXPECT_LE(network.error(fits, 0, member, kSecond), fits[member]->uncertainty);
    EXPECT_LT(fits[member]->uncertainty, 150'000);
  }
  EXPECT_LT(network.error(fits, 0, 2, kSecond), 10'000) << "the path is the same in both directions";
  EXPECT_EQ(fits[0]->uncertainty, 0);
}

TEST(Clocks, DriftIsFoundOverALongTrace) {
  Network network{{{0}, {3600 * kSecond, 40e-6}, {-kSecond, -25e-6}}, {}};
  network.talk(0, 1, 20, 100'000, 100'000);
  network.talk(1, 2, 20, 100'000, 100'000);
  const auto fits = network.fit();
  for (const int64_t time : {int64_t{0}, 10 * kSecond, 20 * kSecond}) {
    // 40 ppm of 20 s are 800 us, so a constant offset would be wrong by half of that at the ends.
    EXPECT_LT(network.error(fits, 0, 1, time), 60'000) << time;
    EXPECT_LT(network.error(fits, 0, 2, time), 120'000) << time;
  }
}

TEST(Clocks, NoiseGivesNoDrift) {
  Network network{{{0}, {5}}, {}};
  network.talk(0, 1, 20, 100'000, 100'000);
  const auto fits = network.fit();
  EXPECT_NEAR(fits[1]->rate, 1, 2e-6);
  EXPECT_LT(network.error(fits, 0, 1, 20 * kSecond), 30'000);
}

TEST(Clocks, ThePathOfLeastUncertaintyIsTaken) {
  Network network{{{0}, {100}, {200}}, {}};
  network.talk(0, 2, 1, 5'000'000, 5'000'000);
  network.talk(0, 1, 1, 10'000, 10'000);
  network.talk(1, 2, 1, 10'000, 10'000);
  const auto fits = network.fit();
  EXPECT_LT(fits[2]->uncertainty, 200'000) << "the path leads over member 1";
}

TEST(Clocks, FramesOfACycleSuffice) {
  Network network{{{0}, {-7200 * kSecond}, {86'400 * kSecond}}, {}};
  for (int64_t time = 0; time < 2 * kSecond; time += kSecond / 200) {
    for (const uint32_t from : {0u, 1u, 2u}) {
      network.send(from, (from + 1) % 3, time + from * 1'000'000, 50'000 + 10'000 * static_cast<int64_t>(time % 7));
    }
  }
  const auto fits = network.fit();
  for (const uint32_t member : {1u, 2u}) {
    ASSERT_TRUE(fits[member].has_value()) << member;
    EXPECT_LE(network.error(fits, 0, member, kSecond), fits[member]->uncertainty + 1);
    EXPECT_LT(fits[member]->uncertainty, 3 * 50'000);
  }
}

TEST(Clocks, DriftIsFoundInACycle) {
  Network network{{{0}, {3600 * kSecond, 40e-6}, {-kSecond, -25e-6}}, {}};
  std::exponential_distribution<double> more(1.0 / 200'000);
  for (int64_t time = 0; time < 20 * kSecond; time += kSecond / 200) {
    for (const uint32_t from : {0u, 1u, 2u}) {
      network.send(from, (from + 1) % 3, time, 100'000 + static_cast<int64_t>(more(network.random)));
    }
  }
  const auto fits = network.fit();
  for (const int64_t time : {int64_t{0}, 10 * kSecond, 20 * kSecond}) {
    for (const uint32_t member : {1u, 2u}) {
      ASSERT_TRUE(fits[member].has_value());
      EXPECT_LE(network.error(fits, 0, member, time), fits[member]->uncertainty) << time;
      EXPECT_LT(fits[member]->uncertainty, 300'000);
    }
  }
}

TEST(Clocks, WithoutAnAnswerNothingIsKnown) {
  Network network{{{0}, {0}, {0}}, {}};
  network.talk(0, 1, 1, 10'000, 10'000);
  network.send(0, 2, 0, 1000);
  const auto fits = network.fit();
  EXPECT_TRUE(fits[1].has_value());
  EXPECT_FALSE(fits[2].has_value());
}

TEST(Clocks, ASingleMemberIsItsOwnReference) {
  const auto fits = fit_clocks(2, {});
  ASSERT_TRUE(fits[0].has_value());
  EXPECT_EQ(fits[0]->common(17), 17);
  EXPECT_FALSE(fits[1].has_value());
}

}  // namespace
}  // namespace gleaner::cli
