// Tests how long push_pulls are held for a change of strategy without a coordinator.
#include "comm-lib/supervision/hold_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::supervision {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kDeadline = absl::Seconds(10), kPlanTimeout = absl::Minutes(10);

class HoldLimitTest : public testing::Test {
 protected:
  bool fails_after(absl::Duration time) { return !limit_.tick("w", now_ += time).ok(); }

  HoldLimit limit_{kDeadline, kPlanTimeout};
  absl::Duration now_ = absl::Hours(1);
};

TEST_F(HoldLimitTest, CoordinatorThatIsThereMayTakeItsTime) { EXPECT_FALSE(fails_after(absl::Hours(1))); }

TEST_F(HoldLimitTest, WithoutAnyCoordinatorItEndsAfterTheDeadline) {
  limit_.on_coordinator_gone();
  EXPECT_FALSE(fails_after(absl::Hours(1))) << "the hold has just begun";
  EXPECT_FALSE(fails_after(kDeadline));
  EXPECT_TRUE(limit_.tick("", now_).ok()) << "nothing is held";
  EXPECT_FALSE(fails_after(absl::Seconds(1))) << "another hold";
  now_ += kDeadline + absl::Seconds(1);
  const absl::Status status = limit_.tick("w", now_);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("lost during a change of strategy: tensor 'w'"));
}

TEST_F(HoldLimitTest, CoordinatorThatMayReturnGetsMoreTime) {
  limit_.on_coordinator_lost();
  EXPECT_FALSE(fails_after(absl::ZeroDuration()));
  EXPECT_FALSE(fails_after(kPlanTimeout));
  limit_.on_coordinator_found();
  EXPECT_FALSE(fails_after(absl::Seconds(1)));
  limit_.on_coordinator_lost();
  EXPECT_FALSE(fails_after(absl::Seconds(1)));
  EXPECT_TRUE(fails_after(kPlanTimeout + absl::Seconds(1)));
}

}  // namespace
}  // namespace gleaner::supervision
