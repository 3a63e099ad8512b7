#include "common/strategy/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::strategy {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kRoundTrip = 100e-6;

plan::Plan plan_of(uint32_t workers, uint32_t summers) {
  plan::Plan plan;
  plan.epoch = 1;
  plan.workers = workers;
  for (uint32_t i = 0; i < workers + summers; ++i) plan.members.push_back({10e9});
  plan.first_partition = {0};
  return plan;
}

TEST(Choice, NetworkHasWorkersAndSummersThatOwn) {
  plan::Plan plan = plan_of(3, 3);
  plan.members[3] = {};
  plan.members[4].on_standby = true;
  plan.members[0].bits_per_second = 1e9;
  const auto network = network_of(plan, kRoundTrip);
  ASSERT_TRUE(network.ok()) << network.status();
  ASSERT_EQ(network->host_count(), 4u);
  EXPECT_EQ(network->name(3), "summer/2");
  EXPECT_EQ(network->bits_per_second(0), 1e9);
  EXPECT_EQ(network->latency_seconds(0), kRoundTrip / 4);
}

TEST(Choice, EqualStrategiesShareASchedule) {
  plan::Plan plan = plan_of(8, 0);
  std::vector<plan::Tensor> tensors = {{"a", 64 << 10}, {"b", 64 << 10}, {"small", 1}};
  const auto line = choose(plan, tensors, kRoundTrip);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(plan.schedules, SizeIs(1));
  EXPECT_EQ(tensors[0].schedule, 0u);
  EXPECT_EQ(tensors[1].schedule, 0u);
  EXPECT_EQ(tensors[2].schedule, std::nullopt);
  EXPECT_THAT(*line, HasSubstr("2 tensors of 512.00 KiB by halving-doubling"));
}

TEST(Choice, SummersStayUnlessASchedulesGainIsLarge) {
  plan::Plan plan = plan_of(2, 0);  // two workers exchange halves in any case
  std::vector<plan::Tensor> tensors = {{"large", 64 << 20}};
  ASSERT_TRUE(choose(plan, tensors, kRoundTrip).ok());
  EXPECT_EQ(tensors[0].schedule, std::nullopt);
  EXPECT_THAT(plan.schedules, IsEmpty());
}

TEST(Choice, AccumulatedTensorsHaveNoSchedule) {
  plan::Plan plan = plan_of(8, 0);
  std::vector<plan::Tensor> tensors = {{"a", 64 << 10, DataType::kFloat32, 0, 0, true}};
  ASSERT_TRUE(choose(plan, tensors, kRoundTrip).ok());
  EXPECT_EQ(tensors[0].schedule, std::nullopt);
}

TEST(Choice, OneWorkerNeedsNoSchedule) {
  plan::Plan plan = plan_of(1, 1);
  std::vector<plan::Tensor> tensors = {{"a", 64 << 10}};
  ASSERT_TRUE(choose(plan, tensors, kRoundTrip).ok());
  EXPECT_EQ(tensors[0].schedule, std::nullopt);
}

}  // namespace
}  // namespace gleaner::strategy
