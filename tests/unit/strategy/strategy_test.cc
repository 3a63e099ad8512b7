#include "common/strategy/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/collective/algorithms.h"

namespace gleaner::strategy {
namespace {

using testing::HasSubstr;

TEST(MakeStrategy, EachNameHasItsStrategy) {
  EXPECT_THAT(*make_strategy("summers"), testing::VariantWith<Summers>(testing::_));
  EXPECT_TRUE(is_auto(*make_strategy("auto")));
  EXPECT_EQ(*make_strategy("blueconnect", {3, 2}), Strategy(collective::Spec{"blueconnect", {3, 2}}));
  EXPECT_EQ(*make_strategy("bcube", {}, 4), Strategy(collective::Spec{.algorithm = "bcube", .radix = 4}));
  for (const std::string& name : strategy_names()) EXPECT_EQ(name_of(*make_strategy(name)), name);
}

TEST(MakeStrategy, OnlySchedulesHaveFactorsAndARadix) {
  EXPECT_THAT(make_strategy("summers", {2, 2}).status().message(), HasSubstr("are options of a schedule"));
  EXPECT_THAT(make_strategy("summers", {}, 2).status().message(), HasSubstr("are options of a schedule"));
  EXPECT_THAT(make_strategy("auto", {2, 2}).status().message(), HasSubstr("leave them out"));
  EXPECT_THAT(make_strategy("auto", {}, 2).status().message(), HasSubstr("leave them out"));
}

TEST(ScheduleOf, OnlyASpecNamesOne) {
  EXPECT_EQ(schedule_of(Summers()), nullptr);
  EXPECT_EQ(schedule_of(Auto()), nullptr);
  const Strategy ring = collective::Spec{"ring"};
  EXPECT_EQ(schedule_of(ring)->algorithm, "ring");
}

}  // namespace
}  // namespace gleaner::strategy
