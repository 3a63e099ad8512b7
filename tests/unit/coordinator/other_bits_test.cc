#include "coordinator/planning/other_bits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"
#include "common/strategy/choice.h"
#include "common/topology/builders.h"

namespace gleaner::coordinator {
namespace {

using strategy::Candidate;

// Returns a plan of 8 workers with links of 10 Gbit/s, whose tensors its owners sum.
plan::Plan plan_of(plan::Bits bits, const std::vector<plan::Tensor>& tensors) {
  plan::Plan plan = *plan::make_plan({std::vector<double>(8, 10e9), {}}, tensors, {});
  plan.bits = bits;
  return plan;
}

// The workers are in two racks, between which a ring of them all is faster than their owners.
std::optional<OtherBits> compared(const plan::Plan& plan) {
  const strategy::JobNetwork racks{
      *topology::racks(2, 4, {10e9, 10e9, 5e-6}), strategy::RankMapSource::kIdentity, {}, {}};
  return compare_bits(
      plan, *strategy::model(strategy::request_for(plan, std::make_shared<strategy::JobNetwork>(racks), 0, 0, true)));
}

TEST(OtherBits, ScheduleTakesTheStrategiesOfAuto) {
  const std::vector<plan::Tensor> tensors = {{"small", 1}, {"large", 4 << 20}};
  const auto other = compared(plan_of(plan::Bits::kRankOrder, tensors));
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->bits, plan::Bits::kSchedule);
  EXPECT_THAT(other->strategy, testing::StartsWith("summers, ")) << "a schedule sums the large one";
  EXPECT_LT(other->seconds, other->instead_of_seconds);
  EXPECT_EQ(describe(OtherBits{plan::Bits::kSchedule, 0.0012, 0.0019, "ring"}),
            "class Schedule would take 1.2 ms a step instead of 1.9 ms (ring)");
  EXPECT_EQ(describe(OtherBits{plan::Bits::kSchedule, 0.0019, 0.0019, "summers"}),
            "class Schedule would take as long (summers)");
}

TEST(OtherBits, EachClassHasTheTimesOfTheOther) {
  const std::vector<plan::Tensor> tensors = {{"medium", 64 << 10}};
  const auto other = compared(plan_of(plan::Bits::kRankOrder, tensors));
  const auto back = compared(plan_of(plan::Bits::kSchedule, tensors));
  ASSERT_TRUE(other.has_value() && back.has_value());
  EXPECT_EQ(back->bits, plan::Bits::kRankOrder);
  EXPECT_EQ(back->seconds, other->instead_of_seconds);
  EXPECT_EQ(back->instead_of_seconds, other->seconds);
}

TEST(OtherBits, AreUnknownWithoutBandwidthsOrTensors) {
  plan::Plan plan = plan_of(plan::Bits::kRankOrder, {{"medium", 64 << 10}});
  plan.members[3].bandwidth_assumed = true;
  EXPECT_EQ(compared(plan), std::nullopt);
  const plan::Tensor accumulates{"r", 100, DataType::kFloat32, 0, 0, true};
  EXPECT_EQ(compared(plan_of(plan::Bits::kRankOrder, {accumulates})), std::nullopt);
  EXPECT_EQ(compared(plan_of(plan::Bits::kRankOrder, {})), std::nullopt);
}

TEST(CandidatesOf, RankOrderLeavesOutSchedules) {
  const std::vector<Candidate> all = {
      {{}, {}}, {collective::Spec{"ring"}, {}}, {collective::Spec{plan::kGatherAlgorithm}, {}}};
  const auto names = [&](plan::Bits bits) {
    std::string text;
    for (const Candidate& each : candidates_of(all, bits)) text += name_of(each) + " ";
    return text;
  };
  EXPECT_EQ(names(plan::Bits::kRankOrder), "summers gather ");
  EXPECT_EQ(names(plan::Bits::kSchedule), "summers ring gather ");
}

}  // namespace
}  // namespace gleaner::coordinator
