#include "common/strategy/autotune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>

#include "common/collective/groups.h"
#include "common/strategy/masters.h"

namespace gleaner::strategy {
namespace {

using collective::Groups;
using collective::MasterCounts;
using testing::Each;
using testing::ElementsAre;

double longest(const MasterCounts& counts, const Groups& groups, const std::vector<double>& bandwidths) {
  const std::vector<double> loads = loads_of(counts, groups);
  double most = 0;
  for (size_t rank = 0; rank < loads.size(); ++rank) most = std::max(most, loads[rank] / bandwidths[rank]);
  return most;
}

// Tries all numbers of chunks.
class BruteForce {
 public:
  BruteForce(const Groups& groups, uint32_t chunks, const std::vector<double>& bandwidths)
      : groups_(groups), bandwidths_(bandwidths), chunks_(chunks), ranks_(bandwidths.size()) {
    counts_ = {std::vector<uint32_t>(ranks_), std::vector<uint32_t>(ranks_)};
  }

  double best() {
    choose(0, chunks_);
    return best_;
  }

 private:
  // `left`: chunks without a global master so far. Ranks are consecutive in groups.
  void choose(uint32_t rank, uint32_t left) {
    if (rank == ranks_) {
      if (left == 0) best_ = std::min(best_, longest(counts_, groups_, bandwidths_));
      return;
    }
    const auto& group = *std::ranges::find_if(groups_, [&](const auto& g) { return g.back() >= rank; });
    uint32_t taken = 0;
    for (uint32_t other = group.front(); other < rank; ++other) taken += counts_.local[other];
    const uint32_t rest = chunks_ - taken;
    for (uint32_t local = rank == group.back() ? rest : 0; local <= rest; ++local) {
      for (uint32_t global = 0; global <= std::min(local, left); ++global) {
        counts_.local[rank] = local;
        counts_.global[rank] = global;
        choose(rank + 1, left - global);
      }
    }
  }

  const Groups& groups_;
  const std::vector<double>& bandwidths_;
  const uint32_t chunks_;
  const size_t ranks_;
  MasterCounts counts_;
  double best_ = 1e300;
};

// A job whose step takes as long as its slowest rank.
struct TunedJob {
  Groups groups;
  uint32_t chunks = 128;
  std::vector<double> bandwidths;
  double noise = 0;
  std::mt19937_64 dice{1};

  double jitter() { return 1 + noise * (static_cast<double>(dice() % 2001) / 1000 - 1); }
  double speed(const MasterCounts& counts) const { return 1 / longest(counts, groups, bandwidths); }
  Autotune::Measured measure(const MasterCounts& counts) {
    Autotune::Measured measured{speed(counts) * jitter(), 100e6, {}, std::vector<double>(bandwidths.size(), 100e-6)};
    for (const double bandwidth : bandwidths) measured.bits_per_second.push_back(bandwidth * jitter());
    return measured;
  }
};

double imbalance(const MasterCounts& counts, const Groups& groups) {
  const auto loads = loads_of(counts, groups);
  return *std::ranges::max_element(loads) / *std::ranges::min_element(loads);
}

// Luo §6.2.6, Figure 6.15: node 0 of 8 falls from 5 to 2 Gbit/s at step 1 and recovers at step 11. In the end the load
// is balanced, and meanwhile the job is faster than with the balanced numbers.
void replay(Groups groups, double noise) {
  TunedJob job{std::move(groups), 128, std::vector<double>(8, 5e9), noise};
  Autotune autotune(job.groups, even_masters(job.groups, job.chunks));
  const MasterCounts even = autotune.counts();
  for (int step = 0; step < 40; ++step) {
    job.bandwidths[0] = step >= 1 && step < 11 ? 2e9 : 5e9;
    if (step == 10) {
      EXPECT_GT(job.speed(autotune.counts()), 1.27 * job.speed(even)) << "as fast as the paper's";
      EXPECT_LE(autotune.counts().local[0], even.local[0] / 2);
    }
    autotune.next_weights(job.measure(autotune.counts()));
  }
  EXPECT_TRUE(autotune.is_balanced());
  EXPECT_LT(imbalance(autotune.counts(), job.groups), 1.05);
  EXPECT_EQ(collective::check_masters(autotune.counts(), 8, job.groups), absl::OkStatus());
}

TEST(Autotune, NodeSlowsAndRecovers) { replay(collective::even_groups(8, 1), 0); }
TEST(Autotune, NodeSlowsAndRecoversInGroups) { replay(collective::even_groups(8, 2), 0); }
TEST(Autotune, NodeSlowsAndRecoversWithNoise) { replay(collective::even_groups(8, 2), 0.01); }

TEST(Autotune, SmallChangesTriggerNothing) {
  TunedJob job{collective::even_groups(8, 2), 128, std::vector<double>(8, 5e9)};
  Autotune autotune(job.groups, even_masters(job.groups, job.chunks));
  EXPECT_EQ(autotune.next_weights(job.measure(autotune.counts())), std::nullopt);
  auto slower = job.measure(autotune.counts());
  slower.speed *= 0.85;
  EXPECT_EQ(autotune.next_weights(slower), std::nullopt);
  EXPECT_TRUE(autotune.is_balanced());
}

TEST(Autotune, QuicktuneComesAtOnce) {
  TunedJob job{collective::even_groups(8, 1), 128, std::vector<double>(8, 5e9)};
  Autotune autotune(job.groups, even_masters(job.groups, job.chunks));
  autotune.next_weights(job.measure(autotune.counts()));
  job.bandwidths[0] = 2e9;
  const double before = job.speed(autotune.counts());
  const auto next = autotune.next_weights(job.measure(autotune.counts()));
  ASSERT_TRUE(next.has_value());
  EXPECT_GT(job.speed(*next), 1.5 * before);
}

TEST(Autotune, FinetuneMovesTwiceAsManyEachTime) {
  TunedJob job{collective::even_groups(4, 1), 64, {5e9, 5e9, 5e9, 5e9}};
  Autotune autotune(job.groups, {{40, 8, 8, 8}, {40, 8, 8, 8}});
  std::vector<uint32_t> of_rank_0;
  for (int i = 0; i < 4; ++i) {
    autotune.next_weights(job.measure(autotune.counts()));
    of_rank_0.push_back(autotune.counts().global[0]);
  }
  EXPECT_THAT(of_rank_0, ElementsAre(39, 37, 33, 25));
}

TEST(Autotune, IncompleteMeasurementsAreIgnored) {
  TunedJob job{collective::even_groups(4, 1), 64, {5e9, 5e9, 5e9, 5e9}};
  Autotune autotune(job.groups, {{40, 8, 8, 8}, {40, 8, 8, 8}});
  using Measured = Autotune::Measured;
  const auto is_ignored = [&](void (*spoil)(Measured&)) {
    Measured measured = job.measure(autotune.counts());
    spoil(measured);
    return !autotune.next_weights(measured).has_value();
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(is_ignored([](Measured& measured) { measured.bits_per_second[1] = 0; }));
  EXPECT_TRUE(is_ignored([](Measured& measured) { measured.bits_per_second[1] = kInfinity; }));
  EXPECT_TRUE(is_ignored([](Measured& measured) { measured.bits_per_second.pop_back(); }));
  EXPECT_TRUE(is_ignored([](Measured& measured) { measured.round_trip_seconds.pop_back(); }));
  EXPECT_TRUE(is_ignored([](Measured& measured) { measured.speed = 0; }));
  EXPECT_TRUE(is_ignored([](Measured& measured) { measured.speed = kInfinity; }));
  EXPECT_TRUE(is_ignored([](Measured& measured) { measured.bytes = 0; }));
  EXPECT_TRUE(is_ignored([](Measured& measured) { measured = {}; }));
  EXPECT_FALSE(is_ignored([](Measured&) {})) << "a complete measurement of unbalanced ranks";
}

// Rank 0 takes longest, but has nothing to give, and the others carry the same.
TEST(Autotune, RanksWithoutMasterships) {
  TunedJob job{collective::even_groups(4, 1), 63, {1e9, 5e9, 5e9, 5e9}};
  Autotune autotune(job.groups, {{0, 21, 21, 21}, {0, 21, 21, 21}}, {.load_weight = 0});
  EXPECT_EQ(autotune.next_weights(job.measure(autotune.counts())), std::nullopt);
  EXPECT_TRUE(autotune.is_balanced());
}

// The speed with Quicktune's numbers is no sudden change, so Finetune moves one chunk.
TEST(Autotune, FinetuneFollowsQuicktune) {
  TunedJob job{collective::even_groups(8, 1), 128, std::vector<double>(8, 5e9)};
  Autotune autotune(job.groups, even_masters(job.groups, job.chunks));
  autotune.next_weights(job.measure(autotune.counts()));
  job.bandwidths[0] = 2e9;
  const auto tuned = autotune.next_weights(job.measure(autotune.counts()));
  ASSERT_TRUE(tuned.has_value());
  job.bandwidths[1] = 2e9;
  Autotune::Measured measured = job.measure(autotune.counts());
  measured.speed *= 10;
  const auto next = autotune.next_weights(measured);
  ASSERT_TRUE(next.has_value());
  int moved = 0;
  for (size_t rank = 0; rank < 8; ++rank) {
    moved += std::abs(static_cast<int>(next->global[rank]) - static_cast<int>(tuned->global[rank]));
  }
  EXPECT_EQ(moved, 2) << "from one rank to another";
}

TEST(Autotune, QuicktuneFollowsFasterLinks) {
  TunedJob job{collective::even_groups(8, 1), 128, std::vector<double>(8, 5e9)};
  job.bandwidths[0] = 2e9;
  Autotune autotune(job.groups, quicktune(job.groups, job.chunks, job.bandwidths));
  autotune.next_weights(job.measure(autotune.counts()));
  ASSERT_LT(autotune.counts().local[0], 10u);
  job.bandwidths.assign(8, 10e9);
  const auto next = autotune.next_weights(job.measure(autotune.counts()));
  ASSERT_TRUE(next.has_value());
  EXPECT_LT(imbalance(*next, job.groups), 1.05);
}

// Each chunk keeps one global master, which is a local master of its group.
TEST(Autotune, NumbersStayValid) {
  std::mt19937_64 dice(5);
  for (int i = 0; i < 40; ++i) {
    TunedJob job{collective::even_groups(6, static_cast<uint32_t>(1 + dice() % 4)), 24, std::vector<double>(6, 5e9)};
    Autotune autotune(job.groups, even_masters(job.groups, job.chunks));
    for (int step = 0; step < 40; ++step) {
      if (step % 8 == 0) {
        for (double& bandwidth : job.bandwidths) bandwidth = 1e9 * static_cast<double>(1 + dice() % 10);
      }
      autotune.next_weights(job.measure(autotune.counts()));
      ASSERT_EQ(collective::check_masters(autotune.counts(), 6, job.groups), absl::OkStatus()) << i << " " << step;
    }
  }
}

// A rank that waits long for answers has a high blame, though its load is that of the others.
TEST(Autotune, LongRoundTripsCount) {
  TunedJob job{collective::even_groups(4, 1), 64, {5e9, 5e9, 5e9, 5e9}};
  Autotune autotune(job.groups, even_masters(job.groups, job.chunks));
  Autotune::Measured measured = job.measure(autotune.counts());
  measured.round_trip_seconds[2] = 1;
  const auto next = autotune.next_weights(measured);
  ASSERT_TRUE(next.has_value());
  EXPECT_THAT(next->global, ElementsAre(16, 16, 15, 17));
  EXPECT_FALSE(autotune.is_balanced());
}

// Ranks have 1.5 of the 100 MB: 0.24 s at 5 Gbit/s, and 0.48 s at half of it, which a round trip of 0.1 s does not add.
TEST(Autotune, BytesCountAsBits) {
  TunedJob job{collective::even_groups(4, 1), 64, {5e9, 2.5e9, 5e9, 5e9}};
  Autotune autotune(job.groups, even_masters(job.groups, job.chunks));
  Autotune::Measured measured = job.measure(autotune.counts());
  measured.round_trip_seconds[2] = 0.1;
  const auto next = autotune.next_weights(measured);
  ASSERT_TRUE(next.has_value());
  EXPECT_THAT(next->global, ElementsAre(16, 15, 16, 17));
}

TEST(Masters, LoadsAreExact) {
  const Groups groups = {{0, 1, 2}, {3, 4}};
  // Rank 0 is the global master of 2 chunks of 4, and a plain local master of 1.
  const MasterCounts counts{{2, 0, 0, 1, 1}, {3, 1, 0, 2, 2}};
  ASSERT_EQ(collective::check_masters(counts, 5, groups), absl::OkStatus());
  EXPECT_THAT(loads_of(counts, groups),
              ElementsAre(2 * (2 + 1) + 1 * 3 + 1, 1 * 3 + 3, 4, 1 * (1 + 1) + 1 * 2 + 2, 1 * (1 + 1) + 1 * 2 + 2));
}

TEST(Masters, QuicktuneIsNearlyOptimal) {
  std::mt19937_64 dice(7);
  for (int i = 0; i < 60; ++i) {
    const Groups groups = i % 3 == 0   ? collective::even_groups(3, 1)
                          : i % 3 == 1 ? Groups{{0, 1}, {2, 3}}
                                       : Groups{{0, 1}, {2}, {3}};
    const size_t ranks = i % 3 == 0 ? 3 : 4;
    std::vector<double> bandwidths;
    for (size_t rank = 0; rank < ranks; ++rank) bandwidths.push_back(1 + static_cast<double>(dice() % 9));
    const uint32_t chunks = i % 3 == 0 ? 24 : 9;
    const MasterCounts tuned = quicktune(groups, chunks, bandwidths);
    ASSERT_EQ(collective::check_masters(tuned, static_cast<uint32_t>(ranks), groups), absl::OkStatus());
    EXPECT_LE(longest(tuned, groups, bandwidths), 1.04 * BruteForce(groups, chunks, bandwidths).best())
        << testing::PrintToString(bandwidths);
  }
}

TEST(Masters, QuicktuneBalancesTheOthersToo) {
  const Groups groups = collective::even_groups(4, 1);
  EXPECT_EQ(quicktune(groups, 32, {2, 5, 5, 5}).local[0], 0u);
  for (const double slowest : {1.0, 2.0}) {
    const MasterCounts tuned = quicktune(groups, 32, {slowest, 5, 5, 5});
    EXPECT_LE(std::ranges::max(tuned.local), 11u) << testing::PrintToString(tuned.local);
  }
}

TEST(Masters, EvenNumbers) {
  const Groups groups = collective::even_groups(8, 2);
  const MasterCounts even = even_masters(groups, 64);
  EXPECT_THAT(even.global, Each(8u));
  EXPECT_THAT(even.local, Each(16u));
  EXPECT_EQ(collective::check_masters(even_masters({{0, 1, 2}, {3}}, 7), 4, {{0, 1, 2}, {3}}), absl::OkStatus());
}

}  // namespace
}  // namespace gleaner::strategy
