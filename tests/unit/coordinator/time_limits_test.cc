// Tests of the parts of Core that decide by time: Liveness, StartTimeout and DeadlockDetector.
#include <gmock/gmock.h>

#include "coordinator/failures/deadlocks.h"
#include "coordinator/failures/liveness.h"
#include "coordinator/failures/start_timeout.h"
#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kMoment = absl::Milliseconds(1);

class LivenessTest : public testing::Test {
 protected:
  LivenessTest() {
    options_.return_timeout = absl::Seconds(20);
    seat_all(roster_, options_);
  }
  bool is_overdue(uint32_t seat, absl::Duration now, bool reattaching = false) {
    return liveness_.check(seat, reattaching, now).has_value();
  }
  Options options_ = job_of(1, 1);
  Roster roster_{options_};
  Liveness liveness_{&options_, &roster_, {}};
};

TEST_F(LivenessTest, ASummerHasLessTimeThanARank) {
  EXPECT_FALSE(is_overdue(0, options_.deadline));
  EXPECT_TRUE(is_overdue(0, options_.deadline + kMoment));
  EXPECT_FALSE(is_overdue(1, options_.summer_timeout));
  EXPECT_TRUE(is_overdue(1, options_.summer_timeout + kMoment));
  EXPECT_TRUE(liveness_.check(1, false, absl::Seconds(5))->is_connected);
}

TEST_F(LivenessTest, AMemberThatIsAwayMayReturn) {
  roster_.vacate(0, Seat::State::kAway, absl::Seconds(1));
  EXPECT_FALSE(is_overdue(0, absl::Seconds(21)));
  EXPECT_TRUE(is_overdue(0, absl::Seconds(21) + kMoment));
  EXPECT_FALSE(is_overdue(0, absl::Seconds(60), true)) << "during re-attachment only start_timeout counts";
  EXPECT_FALSE(liveness_.check(0, false, absl::Seconds(60))->is_connected);
}

TEST_F(LivenessTest, APauseOfTheCoordinatorIsNotTheMembersSilence) {
  for (int i = 1; i <= 9; ++i) liveness_.on_tick(absl::Milliseconds(100) * i);
  liveness_.on_tick(absl::Minutes(10));
  EXPECT_FALSE(is_overdue(1, absl::Minutes(10) + absl::Milliseconds(100)));
  EXPECT_TRUE(is_overdue(1, absl::Minutes(10) + absl::Milliseconds(101)));
}

TEST_F(LivenessTest, HeartbeatsAreDueEverySecond) {
  EXPECT_FALSE(liveness_.take_heartbeat(absl::Seconds(0.9)));
  EXPECT_TRUE(liveness_.take_heartbeat(absl::Seconds(1)));
  EXPECT_FALSE(liveness_.take_heartbeat(absl::Seconds(1.9)));
}

TEST_F(LivenessTest, AMemberIsAwayOnlyIfItMayReturn) {
  Actions actions;
  EXPECT_FALSE(liveness_.mark_away_if_it_may_return(0, "broken", false, false, {}, actions));
  EXPECT_EQ(roster_[0].state, Seat::State::kPresent);
  EXPECT_TRUE(liveness_.mark_away_if_it_may_return(0, "broken", false, true, {}, actions));
  EXPECT_EQ(roster_[0].state, Seat::State::kAway);
  EXPECT_EQ(actions.warnings.front(), "worker 0 at 10.0.0.0:7000: broken; waiting for it to come back");
  options_.return_timeout = absl::ZeroDuration();
  EXPECT_FALSE(liveness_.mark_away_if_it_may_return(1, "broken", false, true, {}, actions));
  EXPECT_TRUE(liveness_.mark_away_if_it_may_return(1, "broken", true, false, {}, actions)) << "during re-attachment";
}

class StartTimeoutTest : public testing::Test {
 protected:
  // Returns the warning that is due at this time; empty: none. The job must not fail.
  static std::string warning(StartTimeout& timeout, bool reattaching, absl::Duration now) {
    Actions actions;
    EXPECT_EQ(timeout.on_tick(reattaching, std::nullopt, now, actions), std::nullopt);
    return actions.warnings.empty() ? "" : actions.warnings.front();
  }
  const Options options_ = job_of(2, 0);
  Roster roster_{options_};
  StartTimeout by_hand_{&options_, &roster_, false, {}};
  StartTimeout of_operator_{&options_, &roster_, true, {}};
  Actions actions_;
};

TEST_F(StartTimeoutTest, WarnsOfMissingMembersAndThenFails) {
  seat_member(roster_, options_, 0);
  EXPECT_EQ(warning(by_hand_, false, absl::Seconds(4)), "");
  EXPECT_EQ(warning(by_hand_, false, absl::Seconds(5)), "waiting for worker 1 to join: 5s of at most 1m");
  EXPECT_EQ(warning(by_hand_, false, absl::Seconds(19)), "");
  EXPECT_EQ(warning(by_hand_, true, absl::Seconds(20)), "waiting for worker 1 to come back: 20s of at most 1m");
  EXPECT_EQ(by_hand_.on_tick(false, std::nullopt, absl::Minutes(1), actions_), std::nullopt);
  const std::optional<Failure> failure = by_hand_.on_tick(false, std::nullopt, absl::Minutes(1) + kMoment, actions_);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->culprit, 1u);
  EXPECT_THAT(std::string(failure->status.message()), HasSubstr("worker 1 did not join within 1m"));
}

TEST_F(StartTimeoutTest, BlamesTheMemberThatDoesNotSendItsPlan) {
  seat_all(roster_, options_);
  EXPECT_EQ(of_operator_.on_tick(true, 1, absl::Minutes(2), actions_)->culprit, 1u);
}

TEST_F(StartTimeoutTest, TheOperatorsCoordinatorWarnsOnlyIfAMemberWaits) {
  EXPECT_EQ(warning(of_operator_, false, absl::Seconds(6)), "");
  seat_member(roster_, options_, 1);
  EXPECT_NE(warning(of_operator_, false, absl::Seconds(6)), "");
}

class DeadlockDetectorTest : public testing::Test {
 protected:
  DeadlockDetectorTest() { seat_all(roster_, options_); }
  void declare(uint32_t rank, const std::string& tensor) {
    ASSERT_EQ(declarations_.declare(rank, {{tensor, 100, DataType::kFloat32, 0}}, {}), absl::OkStatus());
  }
  const Options options_ = job_of(2, 0);
  Roster roster_{options_};
  Declarations declarations_{&roster_};
  EfficiencyMeter efficiency_{2};
  DeadlockDetector deadlocks_{&options_, &roster_, &declarations_, &efficiency_};
  Actions actions_;
};

TEST_F(DeadlockDetectorTest, ARankThatIsBusyOnlyCausesAWarning) {
  declare(0, "w");
  EXPECT_EQ(deadlocks_.check_declarations(absl::Seconds(4), actions_), std::nullopt);
  EXPECT_TRUE(actions_.warnings.empty());
  EXPECT_EQ(deadlocks_.check_declarations(absl::Minutes(9), actions_), std::nullopt);
  ASSERT_EQ(actions_.warnings.size(), 1u);
  EXPECT_THAT(actions_.warnings[0], HasSubstr("tensor 'w' was declared by worker 0 but not by worker 1"));
}

TEST_F(DeadlockDetectorTest, ARankThatWaitsForAnotherSumCannotDeclare) {
  declare(0, "w");
  deadlocks_.on_waiting(1, OldestPushPull{"v", 3, absl::Seconds(1)});
  EXPECT_EQ(deadlocks_.check_declarations(absl::Seconds(61), actions_), std::nullopt);
  const std::optional<Failure> failure = deadlocks_.check_declarations(absl::Seconds(61) + kMoment, actions_);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->culprit, 1u);
  EXPECT_FALSE(failure->is_loss);
}

TEST_F(DeadlockDetectorTest, ARankThatHasLeftCannotDeclare) {
  declare(0, "w");
  roster_.vacate(1, Seat::State::kLeft, {});
  const std::optional<Failure> failure = deadlocks_.check_declarations(kMoment, actions_);
  ASSERT_TRUE(failure.has_value());
  EXPECT_TRUE(absl::IsUnavailable(failure->status)) << failure->status;
  EXPECT_THAT(std::string(failure->status.message()), HasSubstr("worker 1 has left the job"));
}

TEST_F(DeadlockDetectorTest, AsksAllRanksAboutAPushPullThatTakesLong) {
  deadlocks_.on_waiting(0, OldestPushPull{"w", 3, {}});
  EXPECT_EQ(deadlocks_.check_stalls(absl::Seconds(6), actions_), std::nullopt);
  ASSERT_EQ(actions_.sends.size(), 2u);
  EXPECT_EQ(std::get<Inquire>(actions_.sends[1].message).tensor, "w");
}

TEST_F(DeadlockDetectorTest, ARankMustNotWaitForARankThatHasLeft) {
  roster_.vacate(1, Seat::State::kLeft, {});
  roster_[0].last_heard = absl::Seconds(20);
  deadlocks_.on_waiting(0, OldestPushPull{"w", 3, absl::Seconds(1)});
  const absl::Duration left_at = absl::Seconds(15);
  EXPECT_EQ(deadlocks_.check_leavers(left_at, absl::Seconds(19)), std::nullopt) << "results may be in flight";
  const std::optional<Failure> failure = deadlocks_.check_leavers(left_at, absl::Seconds(20));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->culprit, 1u);
  EXPECT_TRUE(failure->is_loss);
  EXPECT_EQ(deadlocks_.check_leavers(left_at, absl::Seconds(23)), std::nullopt) << "worker 0 is silent";
}

}  // namespace
}  // namespace gleaner::coordinator
