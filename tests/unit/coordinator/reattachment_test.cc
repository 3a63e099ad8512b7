#include "coordinator/core/reattachment.h"

#include <gmock/gmock.h>

#include "common/proto/plan_codec.h"
#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class ReattachmentTest : public testing::Test {
 protected:
  ReattachmentTest() { reattachment_.begin(actions_); }
  // The plan with two workers and one summer.
  plan::Plan plan_of(uint32_t epoch) const {
    plan::Plan plan;
    plan.epoch = epoch;
    plan.workers = options_.workers;
    for (uint32_t seat = 0; seat < 3; ++seat) plan.members.push_back({1e9, identity_of(options_, seat).address, 1});
    return plan;
  }
  // The member in this seat returns, and follows the plan of `epoch`.
  void join(uint32_t seat, uint32_t epoch) {
    seat_member(roster_, options_, seat);
    roster_[seat].committed = epoch;
    roster_[seat].digest = proto::digest(plan_of(epoch));
    reattachment_.ask_for_plan(actions_);
  }
  absl::Status answer(uint32_t seat, const plan::Plan& plan) {
    return reattachment_.on_plan(seat, plan, now_, actions_);
  }
  std::vector<StreamId> asked() {
    std::vector<StreamId> streams;
    for (const Send& send : std::exchange(actions_.sends, {})) {
      if (std::holds_alternative<Recall>(send.message)) streams.push_back(send.stream);
    }
    return streams;
  }

  const Options options_ = job_of(2, 1);
  Roster roster_{options_};
  Reattachment reattachment_{&options_, &roster_};
  Actions actions_;
  absl::Duration now_ = absl::Seconds(1000);
};

TEST_F(ReattachmentTest, ARankWithTheHighestEpochIsAsked) {
  join(2, 9);
  EXPECT_THAT(asked(), ElementsAre()) << "ranks are asked first";
  join(0, 4);
  join(1, 5);
  EXPECT_THAT(asked(), ElementsAre(100, 101));
  EXPECT_EQ(reattachment_.asked(), 1u);
}

TEST_F(ReattachmentTest, ASummerIsAskedIfNoRankHasAPlan) {
  join(0, 0);
  join(2, 1);
  EXPECT_THAT(asked(), ElementsAre());
  join(1, 0);
  EXPECT_THAT(asked(), ElementsAre(102));
}

TEST_F(ReattachmentTest, AnotherMemberIsAskedIfTheFirstIsGone) {
  join(0, 4);
  join(1, 4);
  EXPECT_THAT(asked(), ElementsAre(100));
  roster_.vacate(0, Seat::State::kAway, now_);
  reattachment_.ask_for_plan(actions_);
  EXPECT_THAT(asked(), ElementsAre(101));
}

TEST_F(ReattachmentTest, IsCompleteWithThePlanAndAllItsMembers) {
  join(0, 4);
  join(1, 3);
  EXPECT_TRUE(reattachment_.lacks_plan());
  EXPECT_EQ(answer(0, plan_of(4)), absl::OkStatus());
  EXPECT_FALSE(reattachment_.wants_plan(4));
  EXPECT_FALSE(reattachment_.is_complete());
  join(2, 4);
  EXPECT_TRUE(reattachment_.is_complete());
  reattachment_.keep({1, {{"v", 100, DataType::kFloat32, 0}}, {}});
  reattachment_.keep_unreachable(2, {3, "worker 1 reports: refused"});
  reattachment_.keep_unreachable(2, {4, "worker 0 reports: refused"});
  reattachment_.keep_unreachable(2, {3, "worker 1 reports: refused"});
  const Reattachment::Result result = reattachment_.finish();
  EXPECT_EQ(result.plan->epoch, 4u);
  EXPECT_EQ(result.declared.size(), 1u);
  EXPECT_EQ(result.unreachable.at(2).why, "worker 0 reports: refused");
  EXPECT_EQ(result.unreachable.at(2).epoch, 4u);
  EXPECT_FALSE(reattachment_.is_under_way());
}

TEST_F(ReattachmentTest, WaitsForARankWithALaterPlan) {
  join(0, 4);
  EXPECT_EQ(answer(0, plan_of(4)), absl::OkStatus());
  join(2, 4);
  join(1, 5);
  EXPECT_FALSE(reattachment_.is_complete());
  EXPECT_EQ(answer(1, plan_of(5)), absl::OkStatus());
  EXPECT_TRUE(reattachment_.is_complete());
}

TEST_F(ReattachmentTest, APlanOtherThanTheMembersOwnIsRefused) {
  join(0, 4);
  EXPECT_TRUE(absl::IsInternal(answer(0, plan_of(3))));
  plan::Plan other = plan_of(4);
  other.members[1].bits_per_second = 5;
  EXPECT_TRUE(absl::IsInternal(answer(0, other)));
}

TEST_F(ReattachmentTest, ASummerThatThePlanDoesNotIncludeIsRejected) {
  join(2, 4);
  roster_[2].identity.address = "10.9.9.9:7000";
  join(0, 4);
  actions_ = {};
  EXPECT_EQ(answer(0, plan_of(4)), absl::OkStatus());
  ASSERT_EQ(actions_.sends.size(), 1u);
  EXPECT_TRUE(absl::IsAborted(std::get<Rejected>(actions_.sends[0].message).why));
  EXPECT_EQ(roster_[2].state, Seat::State::kEmpty) << "the plan's summer may still return";
  EXPECT_EQ(roster_[2].identity.address, identity_of(options_, 2).address);
}

TEST_F(ReattachmentTest, SummersAreOverdueSixSecondsAfterTheLastRank) {
  join(0, 4);
  EXPECT_EQ(answer(0, plan_of(4)), absl::OkStatus());
  EXPECT_FALSE(reattachment_.are_summers_overdue(now_));
  now_ += absl::Minutes(1);
  join(1, 4);
  EXPECT_FALSE(reattachment_.are_summers_overdue(now_));
  EXPECT_FALSE(reattachment_.are_summers_overdue(now_ + absl::Seconds(6)));
  EXPECT_TRUE(reattachment_.are_summers_overdue(now_ + absl::Seconds(6.1)));
}

TEST_F(ReattachmentTest, FindsRanksWithDifferentPlansOfOneEpoch) {
  join(0, 4);
  join(1, 4);
  EXPECT_EQ(reattachment_.check_digest(1, plan::Plan()), std::nullopt);
  roster_[1].digest = "another";
  const std::optional<Failure> failure = reattachment_.check_digest(1, plan::Plan());
  ASSERT_TRUE(failure.has_value());
  EXPECT_THAT(failure->status.message(), HasSubstr("worker 0 at 10.0.0.0:7000 follow different plans of epoch 4"));
  EXPECT_EQ(failure->culprit, 1u);
}

TEST_F(ReattachmentTest, ARankLeavesAtTheEndIfItFollowsThePlanInForce) {
  join(0, 3);
  join(1, 4);
  join(2, 4);
  reattachment_.keep_leave(0, 3);
  reattachment_.keep_leave(1, 4);
  EXPECT_TRUE(reattachment_.wants_to_leave(0));
  EXPECT_EQ(answer(1, plan_of(4)), absl::OkStatus());
  EXPECT_THAT(reattachment_.finish().leaving, ElementsAre(1));
  EXPECT_FALSE(roster_[0].leaving);
}

TEST_F(ReattachmentTest, KeepsReportsOfMembersThatMayBeSummers) {
  EXPECT_FALSE(reattachment_.keeps_reports_of(1));
  EXPECT_TRUE(reattachment_.keeps_reports_of(2));
  EXPECT_TRUE(reattachment_.keeps_reports_of(7)) << "the plan is not known";
  join(0, 4);
  join(1, 4);
  join(2, 4);
  EXPECT_EQ(answer(0, plan_of(4)), absl::OkStatus());
  reattachment_.keep_unreachable(2, {4, "refused"});
  reattachment_.keep_unreachable(7, {4, "refused"});
  EXPECT_THAT(reattachment_.finish().unreachable, SizeIs(1)) << "the plan has no member 7";
  EXPECT_FALSE(reattachment_.keeps_reports_of(2));
}

TEST_F(ReattachmentTest, ASummerThatAnotherPlanHasIsLeftOut) {
  join(0, 4);
  join(2, 4);
  EXPECT_FALSE(reattachment_.is_left_out(2, plan::Plan())) << "the plan is not known";
  EXPECT_EQ(answer(0, plan_of(4)), absl::OkStatus());
  EXPECT_FALSE(reattachment_.is_left_out(2, plan::Plan()));
  roster_[2].digest = "another";
  EXPECT_TRUE(reattachment_.is_left_out(2, plan::Plan()));
  EXPECT_FALSE(reattachment_.is_left_out(0, plan::Plan())) << "only summers are";
}

}  // namespace
}  // namespace gleaner::coordinator
