#include "coordinator/planning/plan_agreement.h"

#include <gmock/gmock.h>

#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::ElementsAre;

class PlanAgreementTest : public testing::Test {
 protected:
  PlanAgreementTest() { seat_all(roster_, options_); }
  // A plan with all members of the roster.
  plan::Plan plan_of(uint32_t epoch) const {
    plan::Plan plan;
    plan.epoch = epoch;
    plan.workers = options_.workers;
    for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
      plan.members.push_back({1e9, roster_[seat].identity.address, epoch});
    }
    return plan;
  }
  void acknowledge_all(uint32_t epoch) {
    for (uint32_t seat = 0; seat < roster_.size(); ++seat) roster_[seat].acknowledged = epoch;
  }

  const Options options_ = job_of(2, 1);
  Roster roster_{options_};
  PlanAgreement agreement_{&roster_, 7};
};

TEST_F(PlanAgreementTest, ThePlanIsInForceAfterTheLastAcknowledgement) {
  EXPECT_EQ(agreement_.in_force()->epoch, 0u);
  agreement_.propose(plan_of(8), PlanReason::kNeeded, absl::Seconds(1));
  EXPECT_EQ(agreement_.highest_epoch(), 8u);
  for (const uint32_t seat : {2, 0}) {
    roster_[seat].acknowledged = 8;
    EXPECT_EQ(agreement_.commit_if_acknowledged(), nullptr);
  }
  EXPECT_THAT(agreement_.unacknowledged(), ElementsAre(1));
  roster_[1].acknowledged = 8;
  const auto before = agreement_.commit_if_acknowledged();
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(before->epoch, 0u);
  EXPECT_EQ(agreement_.in_force()->epoch, 8u);
  EXPECT_EQ(agreement_.proposed(), nullptr);
  EXPECT_EQ(agreement_.commit_if_acknowledged(), nullptr);
}

TEST_F(PlanAgreementTest, ALeftRankAndALostSummerNeedNotAcknowledge) {
  agreement_.propose(plan_of(8), PlanReason::kNeeded, absl::Seconds(1));
  roster_.vacate(1, Seat::State::kLeft, {});
  roster_.vacate(2, Seat::State::kVacant, {});
  EXPECT_THAT(agreement_.unacknowledged(), ElementsAre(0));
}

TEST_F(PlanAgreementTest, AWithdrawnPlanIsRecognizedByItsEpoch) {
  agreement_.propose(plan_of(8), PlanReason::kOptional, absl::Seconds(1));
  EXPECT_TRUE(agreement_.is_proposed(8));
  EXPECT_FALSE(agreement_.is_withdrawn(8));
  agreement_.withdraw();
  EXPECT_FALSE(agreement_.is_proposed(8));
  EXPECT_TRUE(agreement_.is_withdrawn(8));
  EXPECT_FALSE(agreement_.is_withdrawn(9)) << "no member has seen the plan";
  agreement_.propose(plan_of(9), PlanReason::kOptional, absl::Seconds(2));
  acknowledge_all(9);
  ASSERT_NE(agreement_.commit_if_acknowledged(), nullptr);
  EXPECT_FALSE(agreement_.is_withdrawn(8)) << "a later plan is in force";
}

TEST_F(PlanAgreementTest, EpochsOfReturningMembersAreNotUsedAgain) {
  agreement_.on_known_epoch(5);
  EXPECT_EQ(agreement_.highest_epoch(), 7u);
  agreement_.on_known_epoch(12);
  EXPECT_EQ(agreement_.highest_epoch(), 12u);
}

}  // namespace
}  // namespace gleaner::coordinator
