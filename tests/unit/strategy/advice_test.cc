#include "common/strategy/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/schedule_name.h"
#include "common/strategy/places.h"
#include "common/topology/builders.h"

namespace gleaner::strategy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<plan::Tensor> kTensor = {{.name = "all", .elements = 64 << 20}};

std::vector<std::string> names(const topology::Topology& topology, uint32_t count) {
  std::vector<std::string> names;
  for (uint32_t host = 0; host < count; ++host) names.push_back(topology.name(host));
  return names;
}

TEST(Places, RacksHaveEquallyManyWorkers) {
  const auto placed = balanced(*topology::racks(2, 4, {}), 4, 3);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_THAT(names(*placed, 7), ElementsAre("host-0", "host-1", "host-4", "host-5", "host-2", "host-6", "host-3"));
  EXPECT_EQ(describe_places(*placed, 4, 3), "rack-0: workers 0 to 1, summers 0, 2; rack-1: workers 2 to 3, summer 1");
}

TEST(Places, ASwitchKeepsItsOrder) {
  const auto placed = balanced(*topology::star(3, {}), 2, 1);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_THAT(names(*placed, 3), ElementsAre("host-0", "host-1", "host-2"));
  EXPECT_EQ(describe_places(*placed, 2, 1), "");
  EXPECT_THAT(std::string(balanced(*placed, 3, 1).status().message()),
              HasSubstr("3 hosts, and the job 3 workers and 1"));
}

// On one switch each summer helps, up to as many as there are workers.
TEST(Advice, OneMoreSummerHelpsOnASwitch) {
  const auto advice = advise(*topology::star(12, {10e9, 0, 1e-6}), 8, 4, kTensor, 0);
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_EQ(advice->ways.front().strategy, plan::kSummersStrategy);
  EXPECT_EQ(advice->ways.front().summers, 4u);
  for (uint32_t fewer = 0; fewer < 4; ++fewer) {
    EXPECT_GT(advice->seconds_of(plan::kSummersStrategy, fewer), advice->seconds_of(plan::kSummersStrategy, fewer + 1));
  }
  ASSERT_EQ(advice->changes.size(), 2u) << "a star has no uplinks";
  EXPECT_EQ(advice->changes[0].kind, Change::Kind::kHostLinks);
  EXPECT_EQ(advice->changes[1].kind, Change::Kind::kSummer);
  EXPECT_EQ(advice->changes[1].fastest.summers, 5u);
}

// Behind slow uplinks a schedule is faster than summers, and only faster uplinks would help.
TEST(Advice, SlowUplinksNeedASchedule) {
  const auto placed = balanced(*topology::racks(2, 6, {10e9, 5e9, 1e-6}), 8, 4);
  const auto advice = advise(*placed, 8, 4, kTensor, 0);
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_NE(advice->ways.front().strategy, plan::kSummersStrategy);
  EXPECT_GT(advice->seconds_of(plan::kSummersStrategy, 4), 1.5 * *advice->seconds_of("ring", 0));
  ASSERT_EQ(advice->changes.size(), 1u);
  EXPECT_EQ(advice->changes[0].kind, Change::Kind::kUplinks);
}

TEST(Advice, SeveralTensorsMayHaveSeveralStrategies) {
  const std::vector<plan::Tensor> tensors = {{.name = "small", .elements = 16},
                                             {.name = "large", .elements = 64 << 20}};
  const auto advice = advise(*topology::racks(2, 4, {10e9, 5e9, 20e-6}), 8, 0, tensors, 0);
  ASSERT_TRUE(advice.ok()) << advice.status();
  const auto by_auto = advice->seconds_of("auto", 0);
  ASSERT_TRUE(by_auto.has_value());
  EXPECT_LE(*by_auto, advice->seconds_of("ring", 0));
}

}  // namespace
}  // namespace gleaner::strategy
