#include "common/scavenger/summer_pace.h"

#include <gtest/gtest.h>

#include <map>

namespace gleaner::scavenger {
namespace {

using absl::Milliseconds;

constexpr absl::Duration kBase = absl::Microseconds(200);

class SummerPaceTest : public testing::Test {
 protected:
  SummerPaceTest() {
    pace_.set_planned(1e8);
    pass(absl::Seconds(4), absl::ZeroDuration());
    EXPECT_EQ(pace_.share(), 1);
  }

  // Lets `time` pass. Packets wait `link` on the summer's link, and `worker` on each worker's.
  void pass(absl::Duration time, absl::Duration link, absl::Duration worker = absl::ZeroDuration()) {
    for (const absl::Duration end = now_ + time; now_ < end; now_ += SummerPace::kRound) {
      for (uint32_t i = 0; i < 4; ++i) {
        pace_.on_report(i, 2 * worker);
        pace_.on_path(i, now_, kBase + link + worker, congestion_[i]);
      }
      pace_.end_round(now_);
    }
  }

  SummerPace pace_;
  absl::Duration now_ = absl::Seconds(1);
  std::map<uint32_t, uint64_t> congestion_;
};

TEST_F(SummerPaceTest, GivesWayToAQueueOnTheSummersLink) {
  pass(Milliseconds(200), Milliseconds(10));
  EXPECT_EQ(pace_.share(), Law().floor);
  EXPECT_EQ(pace_.bits_per_second(), Law().floor * 1e8);
  EXPECT_EQ(pace_.delay(), Milliseconds(10));
}

TEST_F(SummerPaceTest, KeepsItsPaceBesideQueuesOnWorkersLinks) {
  pass(absl::Seconds(1), absl::ZeroDuration(), Milliseconds(25));
  EXPECT_EQ(pace_.share(), 1);
}

TEST_F(SummerPaceTest, PacketsLostByMostWorkersAreCongestion) {
  for (uint32_t i = 0; i < 3; ++i) ++congestion_[i];
  pass(SummerPace::kRound, absl::ZeroDuration());
  EXPECT_EQ(pace_.share(), 0.5);
}

TEST_F(SummerPaceTest, PacketsLostByAFewWorkersAreNot) {
  for (uint32_t i = 0; i < 2; ++i) ++congestion_[i];
  pass(Milliseconds(200), absl::ZeroDuration());
  EXPECT_EQ(pace_.share(), 1);
}

TEST_F(SummerPaceTest, OneLossIsCongestionOnce) {
  for (uint32_t i = 0; i < 4; ++i) ++congestion_[i];
  pass(Milliseconds(50), absl::ZeroDuration());
  EXPECT_GE(pace_.share(), 0.5);
}

TEST_F(SummerPaceTest, ANewConnectionsCountBeginsAtZeroAndItsBaseDelayStays) {
  for (uint32_t i = 0; i < 4; ++i) {
    congestion_[i] = 0;
    pace_.remove(i);
  }
  pass(Milliseconds(200), Milliseconds(10));
  EXPECT_EQ(pace_.delay(), Milliseconds(10));
}

TEST_F(SummerPaceTest, WithoutMeasurementsThePaceStays) {
  for (int i = 0; i < 1000; ++i) {
    for (uint32_t worker = 0; worker < 4; ++worker) pace_.on_path(worker, now_, absl::ZeroDuration(), 0);
    pace_.end_round(now_ += SummerPace::kRound);
  }
  EXPECT_EQ(pace_.share(), 1);
  EXPECT_EQ(pace_.delay(), std::nullopt);
}

}  // namespace
}  // namespace gleaner::scavenger
