// Tests of the autoscaler's request for one job from round to round.
#include "operator/service/standing_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::operation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kStart = absl::Hours(1);

autoscale::Verdict addition() {
  autoscale::Verdict verdict;
  verdict.wanted = 1;
  verdict.add = autoscale::Candidate{"s0", 1e9, {}, {}};
  verdict.code = autoscale::Code::kWorthIt;
  return verdict;
}

autoscale::Verdict pausing() {
  autoscale::Verdict verdict;
  verdict.code = autoscale::Code::kPausing;
  return verdict;
}

autoscale::Verdict removal(uint32_t index) {
  autoscale::Verdict verdict;
  verdict.remove = {{index, autoscale::Code::kOwnersNeedIt, "its owners need it"}};
  verdict.code = autoscale::Code::kOwnersNeedIt;
  return verdict;
}

TEST(StandingRequest, AdditionStandsUntilCarriedOut) {
  api::TrainingJobStatus status;
  StandingRequest standing;
  EXPECT_TRUE(standing.update(status, {}, addition(), kStart));
  EXPECT_TRUE(standing.update(status, {}, pausing(), kStart + absl::Seconds(9)));
  EXPECT_TRUE(standing.request().verdict.add.has_value()) << "the job does not have the summer yet";
  status.next_summer = 1;
  EXPECT_TRUE(standing.update(status, {}, pausing(), kStart + absl::Seconds(9)));
  EXPECT_FALSE(standing.request().verdict.add.has_value());
  EXPECT_EQ(standing.request().next_summer, 1U);
}

TEST(StandingRequest, AdditionLapses) {
  const api::TrainingJobStatus status;
  StandingRequest standing;
  standing.update(status, {}, addition(), kStart);
  standing.update(status, {}, pausing(), kStart + StandingRequest::kAdditionLife);
  EXPECT_FALSE(standing.request().verdict.add.has_value());
}

TEST(StandingRequest, AdditionEndsWithAttemptOrRemoval) {
  api::TrainingJobStatus status;
  StandingRequest standing;
  standing.update(status, {}, addition(), kStart);
  standing.update(status, {}, removal(0), kStart);
  EXPECT_FALSE(standing.request().verdict.add.has_value()) << "the removal replaces it";
  standing.update(status, {}, addition(), kStart);
  status.attempt = 1;
  standing.update(status, {}, pausing(), kStart);
  EXPECT_FALSE(standing.request().verdict.add.has_value()) << "it was for another attempt";
}

TEST(StandingRequest, RemovalBecomesOverdue) {
  const api::TrainingJobStatus status;
  StandingRequest standing;
  EXPECT_TRUE(standing.update(status, {}, removal(3), kStart));
  EXPECT_FALSE(standing.update(status, {}, removal(3), kStart + StandingRequest::kOverdue));
  EXPECT_THAT(standing.request().overdue, IsEmpty());
  const absl::Duration late = kStart + StandingRequest::kOverdue + absl::Seconds(1);
  EXPECT_TRUE(standing.update(status, {}, removal(3), late));
  EXPECT_THAT(standing.request().overdue, ElementsAre(3U));
  EXPECT_FALSE(standing.update(status, {}, removal(3), late)) << "the reconciler knows it already";
}

TEST(StandingRequest, SpareBandwidthNeedsNoAction) {
  const api::TrainingJobStatus status;
  StandingRequest standing;
  standing.update(status, {}, pausing(), kStart);
  EXPECT_FALSE(standing.update(status, {{0, 1e9}}, pausing(), kStart));
  EXPECT_THAT(standing.request().spare_bits_per_second, ElementsAre(std::pair<uint32_t, double>(0, 1e9)));
}

}  // namespace
}  // namespace gleaner::operation
