// Tests of how the wait for a late rank is told from communication.
#include "coordinator/measure/rank_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::coordinator {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(RankWaits, AllWaitForTheRankThatCommunicatesLeast) {
  const RankWaits waits = waits_of(std::vector<RankSteps>{{1, 13.5}, {1, 0.5}, {1, 13}});
  EXPECT_EQ(waits.latest, 1u);
  EXPECT_THAT(waits.seconds, ElementsAre(DoubleEq(13), DoubleEq(0), DoubleEq(12.5)));
}

TEST(RankWaits, RanksThatCountOtherStepsDoNotWait) {
  const RankWaits waits = waits_of(std::vector<RankSteps>{{4, 2}, {2, 1}, {4, 8}});
  EXPECT_THAT(waits.seconds, ElementsAre(DoubleEq(0), DoubleEq(0), DoubleEq(0)));
}

TEST(RankWaits, AFewPercentAreNoise) {
  const RankWaits waits = waits_of(std::vector<RankSteps>{{1, 1}, {1, 1.03}, {1, 1.2}});
  EXPECT_THAT(waits.seconds, ElementsAre(DoubleEq(0), DoubleEq(0), DoubleNear(0.2, 1e-9)));
}

TEST(RankWaits, CommunicationIsNeverBelowItsBound) {
  const RankWaits waits = waits_of(std::vector<RankSteps>{{1, 10, 2}, {1, 0.5, 2}, {1, 1, 2}});
  EXPECT_THAT(waits.seconds, ElementsAre(DoubleEq(8), DoubleEq(0), DoubleEq(0)));
}

TEST(RankWaits, OneRankWaitsForNone) {
  EXPECT_THAT(waits_of(std::vector<RankSteps>{{3, 10, 2}}).seconds, ElementsAre(DoubleEq(0)));
}

}  // namespace
}  // namespace gleaner::coordinator
