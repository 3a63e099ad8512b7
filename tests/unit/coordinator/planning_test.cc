// Tests of Planner and Planning: the choice of the next plan, and the seats of summers.
#include "coordinator/planning/planning.h"

#include <gmock/gmock.h>

#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PlanningTest : public testing::Test {
 protected:
  PlanningTest() {
    seat_all(roster_, options_);
    EXPECT_EQ(planning_.propose_first(now_, actions_), absl::OkStatus());
    acknowledge_and_commit();
    planning_.add_tensors({{"w", 100000, DataType::kFloat32, 0}});
    propose();
    acknowledge_and_commit();
    EXPECT_EQ(planning_.in_force().epoch, 2u);
    EXPECT_EQ(planning_.in_force().tensors.size(), 1u);
  }
  // Proposes the next plan and returns its epoch; 0: there is no reason for one.
  uint32_t propose(bool ending = false) {
    EXPECT_EQ(planning_.propose_next(ending, now_, actions_), absl::OkStatus());
    return planning_.is_proposed() ? planning_.agreement().proposed()->epoch : 0;
  }
  void acknowledge_and_commit() {
    for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
      if (roster_[seat].takes_part()) roster_[seat].acknowledged = planning_.agreement().highest_epoch();
    }
    EXPECT_TRUE(planning_.commit_if_acknowledged(now_, actions_));
  }
  // The member in this seat refuses the proposed plan.
  Finding refuse(uint32_t seat, absl::string_view why) {
    const uint32_t epoch = planning_.agreement().proposed()->epoch;
    return planning_.on_refused(seat, epoch, absl::ResourceExhaustedError(why), false, now_, actions_);
  }
  // Returns the finding `passed` after the proposal of the plan in force or of the proposed plan.
  Finding check_after(absl::Duration passed) { return planning_.check_overdue(now_ + passed, actions_); }
  // Returns the streams that were sent a message of this type since the last call.
  template <typename Type>
  std::vector<StreamId> receivers() {
    std::vector<StreamId> streams;
    for (const Send& send : std::exchange(actions_.sends, {})) {
      if (std::holds_alternative<Type>(send.message)) streams.push_back(send.stream);
    }
    return streams;
  }
  PlanReason reason() const { return planning_.agreement().reason(); }

  const Options options_ = job_of(2, 2);
  Roster roster_{options_};
  Planning planning_{&options_, &roster_, 0};
  Actions actions_;
  absl::Duration now_ = absl::Seconds(100);
};

TEST_F(PlanningTest, WithoutAChangeThereIsNoPlan) { EXPECT_EQ(propose(), 0u); }

TEST_F(PlanningTest, PrepareAndCommitReachTheMembersOfThePlan) {
  actions_ = {};
  roster_[3].bits_per_second = 1e8;
  EXPECT_EQ(propose(), 3u);
  EXPECT_EQ(reason(), PlanReason::kOptional);
  EXPECT_THAT(receivers<Prepare>(), ElementsAre(100, 101, 102, 103));
  acknowledge_and_commit();
  EXPECT_THAT(receivers<Commit>(), ElementsAre(100, 101, 102, 103));
  EXPECT_EQ(planning_.changes().moved, 1u);
}

TEST_F(PlanningTest, ALostSummerComesBeforeTensorsAndIsFollowedByAnOptionalPlan) {
  planning_.on_summer_lost(3, "silent", true, now_, actions_);
  planning_.add_tensors({{"v", 100, DataType::kFloat32, 0}});
  EXPECT_EQ(propose(), 3u);
  EXPECT_EQ(reason(), PlanReason::kRecovery);
  now_ += absl::Seconds(2);
  acknowledge_and_commit();
  EXPECT_EQ(planning_.in_force().tensors.size(), 2u);
  EXPECT_EQ(planning_.changes().lost, 1u);
  EXPECT_EQ(planning_.changes().recovered, 1u);
  EXPECT_DOUBLE_EQ(planning_.changes().recovery_seconds, 2);
  EXPECT_EQ(propose(), 4u) << "the shares are uneven";
  EXPECT_EQ(reason(), PlanReason::kOptional);
  acknowledge_and_commit();
  EXPECT_EQ(propose(), 0u);
}

TEST_F(PlanningTest, WithdrawnOptionalPlansWaitLongerEachTime) {
  roster_[3].bits_per_second = 1e8;
  for (const absl::Duration pause : {absl::Seconds(5), absl::Seconds(10), absl::Seconds(20)}) {
    ASSERT_NE(propose(), 0u);
    refuse(1, "no memory");
    EXPECT_THAT(actions_.warnings.back(), HasSubstr("can't follow the plan of epoch"));
    now_ += pause - absl::Milliseconds(1);
    EXPECT_EQ(propose(), 0u);
    now_ += absl::Milliseconds(1);
  }
  EXPECT_EQ(planning_.changes().withdrawn, 3u);
  ASSERT_NE(propose(), 0u);
  acknowledge_and_commit();
  roster_[3].bits_per_second = 2e8;
  ASSERT_NE(propose(), 0u);
  refuse(1, "again");
  now_ += absl::Seconds(5);
  EXPECT_NE(propose(), 0u) << "a committed optional plan resets the wait";
}

TEST_F(PlanningTest, ASummerThatLeavesEndsTheWaitAndGetsGoodbye) {
  roster_[2].bits_per_second = 1e8;
  ASSERT_NE(propose(), 0u);
  refuse(1, "no memory");
  planning_.on_summer_leaves(3, false, now_, actions_);
  ASSERT_NE(propose(), 0u);
  actions_ = {};
  acknowledge_and_commit();
  EXPECT_THAT(receivers<Goodbye>(), ElementsAre(103));
  EXPECT_EQ(roster_[3].state, Seat::State::kVacant);
  EXPECT_EQ(planning_.changes().left, 1u);
}

TEST_F(PlanningTest, TensorsOfAWithdrawnPlanAreInTheNext) {
  planning_.add_tensors({{"v", 100, DataType::kFloat32, 0}});
  ASSERT_EQ(propose(), 3u);
  planning_.on_summer_lost(2, "silent", true, now_, actions_);
  EXPECT_FALSE(planning_.is_proposed()) << "the lost summer can't acknowledge it";
  ASSERT_EQ(propose(), 4u);
  acknowledge_and_commit();
  EXPECT_EQ(planning_.in_force().tensors.size(), 2u);
}

TEST_F(PlanningTest, AfterARankHasLeftOnlyTensorsCauseAPlan) {
  planning_.on_summer_lost(3, "silent", true, now_, actions_);
  EXPECT_EQ(propose(true), 0u);
  planning_.add_tensors({{"v", 100, DataType::kFloat32, 0}});
  EXPECT_NE(propose(true), 0u);
  EXPECT_EQ(reason(), PlanReason::kNeeded);
  planning_.withdraw_unless_needed(actions_);
  EXPECT_TRUE(planning_.is_proposed());
}

TEST_F(PlanningTest, AnOptionalPlanIsOverdueEarlier) {
  planning_.add_tensors({{"v", 100, DataType::kFloat32, 0}});
  ASSERT_NE(propose(), 0u);
  EXPECT_EQ(check_after(options_.deadline), Finding());
  const auto failure = std::get<Failure>(check_after(options_.deadline + absl::Milliseconds(1)));
  EXPECT_THAT(failure.status.message(), HasSubstr("did not acknowledge the plan of epoch 3 within 10s"));
  EXPECT_EQ(failure.culprit, 0u);
  EXPECT_TRUE(failure.is_loss);
  acknowledge_and_commit();
  EXPECT_EQ(check_after(absl::Minutes(1)), Finding());
  roster_[3].bits_per_second = 1e8;
  ASSERT_NE(propose(), 0u);
  EXPECT_EQ(check_after(options_.change_timeout), Finding());
  EXPECT_TRUE(planning_.is_proposed());
  EXPECT_EQ(check_after(options_.change_timeout + absl::Milliseconds(1)), Finding());
  EXPECT_FALSE(planning_.is_proposed());
  EXPECT_THAT(actions_.warnings.back(), HasSubstr("summer 1 did not acknowledge it within 2s"));
}

TEST_F(PlanningTest, ASilentSummerIsLostOnceANeededPlanIsOverdue) {
  planning_.add_tensors({{"v", 100, DataType::kFloat32, 0}});
  ASSERT_EQ(propose(), 3u);
  for (const uint32_t seat : {0, 1, 3}) EXPECT_EQ(*planning_.on_acknowledged(seat, 3), true);
  EXPECT_EQ(check_after(options_.deadline + absl::Milliseconds(1)), Finding(Loss{2, "it does not acknowledge a plan"}));
}

TEST_F(PlanningTest, AcknowledgementsCountOnce) {
  planning_.add_tensors({{"v", 100, DataType::kFloat32, 0}});
  ASSERT_EQ(propose(), 3u);
  EXPECT_EQ(*planning_.on_acknowledged(0, 3), true);
  EXPECT_EQ(*planning_.on_acknowledged(0, 3), false);
  EXPECT_EQ(*planning_.on_acknowledged(0, 2), false) << "too late";
  EXPECT_TRUE(absl::IsInternal(planning_.on_acknowledged(0, 4).status())) << "never proposed";
}

TEST_F(PlanningTest, RefusalsEndTheJobOrTheSummer) {
  planning_.add_tensors({{"v", 100, DataType::kFloat32, 0}});
  ASSERT_EQ(propose(), 3u);
  const std::string text = "can't follow the plan of epoch 3: no memory";
  EXPECT_EQ(refuse(2, "no memory"), Finding(Loss{2, "it " + text}));
  EXPECT_EQ(refuse(1, "no memory"),
            Finding(Failure{absl::ResourceExhaustedError("worker 1 at 10.0.0.1:7000 " + text), 1}));
  planning_.on_summer_lost(2, "silent", true, now_, actions_);
  EXPECT_EQ(planning_.on_refused(1, 3, absl::InternalError("late"), false, now_, actions_), Finding())
      << "the plan is withdrawn already";
}

TEST_F(PlanningTest, ALostSummerIsRejectedWithTheReason) {
  actions_ = {};
  planning_.on_summer_lost(3, "silent", true, now_, actions_);
  ASSERT_EQ(actions_.sends.size(), 1u);
  EXPECT_EQ(actions_.sends[0].stream, 103u);
  EXPECT_EQ(std::get<Rejected>(actions_.sends[0].message).why, absl::AbortedError("left out of the job: silent"));
  EXPECT_THAT(actions_.warnings,
              ElementsAre("summer 1 at 10.0.0.3:7000 is lost: silent; other members take over its partitions"));
}

TEST_F(PlanningTest, AReturningMemberGetsThePlansThatItMissed) {
  actions_ = {};
  roster_[1].committed = 1;
  planning_.catch_up(1, actions_);
  EXPECT_EQ(actions_.sends.size(), 2u);
  EXPECT_THAT(receivers<Commit>(), ElementsAre(101));
  roster_[1].committed = 2;
  planning_.catch_up(1, actions_);
  EXPECT_THAT(receivers<Prepare>(), ElementsAre());
}

// Plans of a job with --strategy auto, whose tensors wait for models.
TEST(AutoPlanning, ARecoveryDoesNotWaitForModels) {
  Options options = job_of(2, 2);
  options.reduction.strategy = strategy::Auto();
  options.bits_per_second = 10e9;
  Roster roster(options);
  seat_all(roster, options);
  Planning planning(&options, &roster, 0);
  Actions actions;
  const absl::Duration now = absl::Seconds(100);
  const auto propose = [&] {
    EXPECT_EQ(planning.propose_next(false, now, actions), absl::OkStatus());
    return planning.is_proposed();
  };
  const auto commit = [&] {
    for (uint32_t seat = 0; seat < roster.size(); ++seat) {
      if (roster[seat].takes_part()) roster[seat].acknowledged = planning.agreement().highest_epoch();
    }
    EXPECT_TRUE(planning.commit_if_acknowledged(now, actions));
  };
  const auto answer = [&] {
    const ModelRequest request = std::exchange(actions.model, nullptr);
    ASSERT_NE(request, nullptr);
    planning.on_modelled(request, Modelling::carry_out(*request));
  };
  ASSERT_EQ(planning.propose_first(now, actions), absl::OkStatus());
  commit();
  planning.add_tensors({{"w", 100000, DataType::kFloat32, 0}});
  EXPECT_FALSE(propose()) << "the models of two summers are on their way";
  planning.on_summer_lost(3, "its process ended", true, now, actions);
  ASSERT_TRUE(propose());
  EXPECT_EQ(planning.agreement().reason(), PlanReason::kRecovery);
  EXPECT_TRUE(planning.agreement().proposed()->tensors.empty());
  commit();
  answer();
  EXPECT_FALSE(propose()) << "the models of one summer are on their way";
  answer();
  ASSERT_TRUE(propose());
  EXPECT_EQ(planning.agreement().reason(), PlanReason::kNeeded);
  EXPECT_EQ(planning.agreement().proposed()->tensors.size(), 1u);
}

}  // namespace
}  // namespace gleaner::coordinator
