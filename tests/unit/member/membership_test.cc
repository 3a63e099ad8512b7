// Tests of a member's core, without threads, connections or a clock: events go in, actions come out.
#include "common/member/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/partitioner.h"

namespace gleaner::member {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::Duration kLeaveTimeout = absl::Seconds(2);

class MembershipTest : public testing::Test {
 protected:
  explicit MembershipTest(bool is_summer = false) : membership_(terms(is_summer), [this] { return die_; }) {
    membership_.begin(now_);
  }
  static Membership::Terms terms(bool is_summer) {
    Membership::Terms terms;
    terms.is_summer = is_summer;
    terms.coordinator = "10.0.0.1:7000";
    terms.timeout = absl::Seconds(60);
    terms.plan_timeout = absl::Minutes(10);
    return terms;
  }
  static plan::Tensor tensor(const std::string& name) { return {name, 10, DataType::kFloat32, 0}; }
  static std::shared_ptr<const plan::Plan> plan(uint32_t epoch, const std::vector<plan::Tensor>& tensors = {}) {
    auto made = *plan::make_plan({{1e9, 1e9}, {}}, tensors, {});
    made.epoch = epoch;
    return std::make_shared<const plan::Plan>(std::move(made));
  }
  Welcome welcome(const std::string& session = "s", uint32_t summers = 1) const {
    Welcome welcome;
    welcome.member = 1;
    welcome.workers = 2;
    welcome.summers = summers;
    welcome.deadline = absl::Seconds(10);
    welcome.session = session;
    return welcome;
  }

  // Returns the actions since the last call.
  std::vector<Action> take() { return membership_.take(); }
  template <typename T>
  std::optional<T> last(const std::vector<Action>& actions) {
    std::optional<T> found;
    const auto look = [&found](const auto& what) {
      if constexpr (std::is_same_v<std::decay_t<decltype(what)>, T>) found = what;
    };
    for (const Action& action : actions) {
      std::visit(look, action);
      if (const auto* message = std::get_if<control::MemberMessage>(&action)) std::visit(look, *message);
      if (const auto* event = std::get_if<Event>(&action)) std::visit(look, *event);
    }
    return found;
  }
  template <typename T>
  bool happened() {
    return last<T>(take()).has_value();
  }
  std::string failure() {
    const std::optional<Failed> failed = last<Failed>(take());
    return failed.has_value() ? std::string(failed->status.message()) : "none";
  }
  // Lets time pass until the next attempt to connect, and returns how long that took.
  absl::Duration next_attempt() {
    const absl::Duration start = now_;
    while (!happened<Connect>() && now_ - start < absl::Minutes(1)) pass(absl::Milliseconds(5));
    return now_ - start;
  }
  void pass(absl::Duration time) {
    const absl::Duration end = now_ + time;
    while (now_ < end) {
      now_ = std::min(end, now_ + absl::Milliseconds(100));
      membership_.on_tick(true, now_);
    }
  }
  void stand_still(absl::Duration time) { membership_.on_tick(true, now_ += time); }
  void tell(const control::CoordinatorMessage& message) { membership_.on_message(message, now_); }
  void come_in(const std::string& session = "s") {
    membership_.on_challenged(now_);
    membership_.on_welcome(welcome(session), now_);
  }
  void begin_job(const std::string& session = "s") {
    come_in(session);
    tell(Prepare{plan(1)});
    tell(Commit{1});
    take();
  }
  void break_stream(const absl::Status& why = absl::UnavailableError("broken")) { membership_.on_closed(why, now_); }

  absl::Duration now_ = absl::Seconds(1000);
  double die_ = 1;
  Membership membership_;
};

class SummerMembershipTest : public MembershipTest {
 protected:
  SummerMembershipTest() : MembershipTest(true) {}
};

TEST_F(MembershipTest, RetriesAnUnreachableCoordinatorWithGrowingPauses) {
  EXPECT_TRUE(happened<Connect>());
  std::vector<int64_t> pauses;
  for (int i = 0; i < 6; ++i) {
    break_stream();
    pauses.push_back(absl::ToInt64Milliseconds(next_attempt()));
  }
  EXPECT_THAT(pauses, ElementsAre(100, 200, 400, 800, 1000, 1000));
  die_ = 0;
  break_stream();
  EXPECT_EQ(next_attempt(), absl::Milliseconds(500)) << "half of a pause at least";
}

TEST_F(MembershipTest, GivesUpWithoutAnAnswerInTime) {
  break_stream(absl::UnavailableError("connection refused"));
  while (now_ < absl::Seconds(1061)) {
    pass(absl::Seconds(1));
    break_stream(absl::UnavailableError("connection refused"));
  }
  EXPECT_THAT(failure(), HasSubstr("can't reach the coordinator at 10.0.0.1:7000 within 1m: connection refused"));
  EXPECT_TRUE(membership_.is_over());
}

TEST_F(MembershipTest, ASilentConnectionIsReplaced) {
  take();
  pass(absl::Seconds(20));
  EXPECT_FALSE(happened<Disconnect>());
  pass(absl::Milliseconds(100));
  EXPECT_TRUE(happened<Disconnect>());
  EXPECT_LE(next_attempt(), absl::Milliseconds(100));
}

TEST_F(MembershipTest, RetriesTransientErrorsOnly) {
  for (const auto code : {absl::StatusCode::kNotFound, absl::StatusCode::kUnavailable,
                          absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kResourceExhausted}) {
    membership_.on_challenged(now_);
    break_stream(absl::Status(code, "not now"));
    EXPECT_LT(next_attempt(), absl::Seconds(2)) << code;
  }
  membership_.on_challenged(now_);
  break_stream(absl::PermissionDeniedError("wrong token"));
  EXPECT_EQ(failure(), "wrong token");
}

TEST_F(MembershipTest, ATakenSeatIsAnErrorUnlessThisMemberMayHaveTakenIt) {
  membership_.on_challenged(now_);
  break_stream();  // the coordinator may have admitted the member, and not know yet that the connection broke
  next_attempt();
  membership_.on_challenged(now_);
  break_stream(absl::AlreadyExistsError("has joined already"));
  EXPECT_LT(next_attempt(), absl::Seconds(2));
  come_in();
  EXPECT_TRUE(happened<Welcome>());
}

TEST_F(MembershipTest, ASeatOfAnotherProcessIsAnError) {
  break_stream();  // before the coordinator answered
  next_attempt();
  membership_.on_challenged(now_);
  break_stream(absl::AlreadyExistsError("has joined already"));
  EXPECT_EQ(failure(), "has joined already");
}

TEST_F(MembershipTest, ARepeatedWelcomeChangesNothing) {
  come_in();
  EXPECT_TRUE(happened<Welcome>());
  tell(Prepare{plan(1)});
  membership_.on_welcome(welcome("s", 2), now_);
  EXPECT_FALSE(happened<Welcome>()) << "another number of summers does not change the place";
  tell(Commit{1});
  EXPECT_EQ(last<Commit>(take())->epoch, 1u);
}

TEST_F(MembershipTest, AWelcomeToAnotherPlaceForgetsThePreparedPlan) {
  come_in();
  tell(Prepare{plan(1)});
  Welcome other = welcome();
  other.member = 0;
  membership_.on_welcome(other, now_);
  EXPECT_EQ(last<Welcome>(take())->member, 0u);
  tell(Commit{1});
  EXPECT_THAT(failure(), HasSubstr("commits a plan of epoch 1 that it did not prepare"));
}

TEST_F(MembershipTest, BeforeTheStartALostCoordinatorFailsTheJobUnlessItCanBeReplaced) {
  come_in("");
  take();
  break_stream();
  EXPECT_THAT(failure(), HasSubstr("was lost before the job had begun: broken"));
}

TEST_F(MembershipTest, ReattachesToAReplacementWithItsPlans) {
  begin_job();
  break_stream();
  const std::vector<Action> lost = take();
  EXPECT_TRUE(last<CoordinatorLost>(lost).has_value());
  EXPECT_FALSE(last<CoordinatorGone>(lost).has_value());
  EXPECT_EQ(next_attempt(), absl::Milliseconds(200));
  membership_.on_challenged(now_);
  const std::optional<Introduce> introduction = last<Introduce>(take());
  ASSERT_TRUE(introduction.has_value() && introduction->resume.has_value());
  EXPECT_EQ(introduction->resume->session, "s");
  EXPECT_EQ(introduction->resume->committed, 1u);
  EXPECT_EQ(introduction->resume->member, 1u);
  membership_.on_welcome(welcome(), now_);
  EXPECT_TRUE(happened<CoordinatorFound>());
}

TEST_F(MembershipTest, ASilentCoordinatorIsLost) {
  begin_job();
  for (int i = 0; i < 9; ++i) pass(absl::Seconds(1));
  EXPECT_FALSE(happened<CoordinatorLost>());
  pass(absl::Seconds(2));
  const std::vector<Action> actions = take();
  EXPECT_TRUE(last<CoordinatorLost>(actions).has_value());
  EXPECT_TRUE(last<Disconnect>(actions).has_value());
}

TEST_F(MembershipTest, APauseOfTheMemberIsNotSilenceOfTheCoordinator) {
  begin_job();
  stand_still(absl::Minutes(1));
  EXPECT_FALSE(happened<CoordinatorLost>()) << "messages of that minute are still unread";
  pass(absl::Seconds(9));
  EXPECT_FALSE(happened<CoordinatorLost>());
  pass(absl::Seconds(2));
  EXPECT_TRUE(happened<CoordinatorLost>());
}

TEST_F(MembershipTest, WithoutASessionItContinuesAloneWithPlannedTensors) {
  begin_job("");
  break_stream();
  EXPECT_TRUE(happened<CoordinatorGone>());
  pass(absl::Hours(1));
  EXPECT_THAT(take(), IsEmpty());
  membership_.declare({tensor("late")}, {}, now_);
  EXPECT_THAT(failure(), HasSubstr("is lost and can't be replaced, and no plan has tensor 'late': broken"));
}

TEST_F(MembershipTest, ACoordinatorThatRefusesForGoodIsGivenUp) {
  begin_job();
  break_stream();
  next_attempt();
  membership_.on_challenged(now_);
  break_stream(absl::FailedPreconditionError("started anew"));
  EXPECT_TRUE(happened<CoordinatorGone>());
  EXPECT_EQ(next_attempt(), absl::Minutes(1)) << "the member no longer looks for the coordinator";
}

TEST_F(MembershipTest, WithoutACoordinatorItCommitsThePlanThatOthersFollow) {
  begin_job("");
  tell(Prepare{plan(2)});
  membership_.on_owner_follows(2, false);
  EXPECT_FALSE(happened<Commit>()) << "the member waits for the coordinator's Commit";
  break_stream();
  const std::vector<Action> actions = take();
  ASSERT_TRUE(last<CoordinatorGone>(actions).has_value());
  ASSERT_TRUE(last<Commit>(actions).has_value());
  EXPECT_EQ(last<Commit>(actions)->epoch, 2u);
}

TEST_F(MembershipTest, WithoutACoordinatorItMayLearnLaterWhichPlanOthersFollow) {
  begin_job("");
  tell(Prepare{plan(2)});
  break_stream();
  membership_.on_owner_follows(1, true);
  EXPECT_FALSE(happened<Commit>());
  membership_.on_owner_follows(2, false);
  EXPECT_TRUE(happened<Commit>());
  membership_.on_owner_follows(2, true);
  EXPECT_FALSE(happened<Commit>()) << "once";
}

TEST_F(MembershipTest, IfACoordinatorMayReturnOnlyPlansThatARankFollowsAreFinal) {
  begin_job();
  tell(Prepare{plan(2)});
  break_stream();
  take();
  membership_.on_owner_follows(2, false);
  EXPECT_FALSE(happened<Commit>()) << "the next coordinator asks ranks, and may withdraw the plan";
  membership_.on_owner_follows(2, true);
  EXPECT_TRUE(happened<Commit>());
  next_attempt();
  membership_.on_challenged(now_);
  EXPECT_EQ(last<Introduce>(take())->resume->committed, 2u);
}

TEST_F(MembershipTest, AfterAReattachmentItWaitsForTheAnswer) {
  begin_job();
  tell(Prepare{plan(2)});
  break_stream();
  next_attempt();
  membership_.on_challenged(now_);
  membership_.on_owner_follows(2, true);
  EXPECT_FALSE(happened<Commit>());
  membership_.on_welcome(welcome(), now_);
  tell(Prepare{plan(2)});
  tell(Commit{2});
  EXPECT_TRUE(happened<Commit>());
}

TEST_F(MembershipTest, ForgetsAWithdrawnPlan) {
  begin_job();
  tell(Prepare{plan(2)});
  take();
  tell(Withdraw{3});
  EXPECT_THAT(take(), IsEmpty()) << "another plan";
  tell(Withdraw{2});
  EXPECT_EQ(last<Withdraw>(take())->epoch, 2u);
  tell(Withdraw{2});
  EXPECT_THAT(take(), IsEmpty()) << "no plan is prepared";
  break_stream();
  membership_.on_owner_follows(2, true);
  EXPECT_FALSE(happened<Commit>());
  next_attempt();
  membership_.on_challenged(now_);
  EXPECT_EQ(last<Introduce>(take())->resume->prepared, 2u) << "the next coordinator must not use that epoch again";
}

TEST_F(MembershipTest, TellsHowManyPushPullsHaveBegun) {
  begin_job();
  tell(CountPushPulls{});
  EXPECT_TRUE(happened<CountPushPulls>());
  membership_.push_pulls(1, {3, 4}, now_);
  EXPECT_EQ(*last<PushPulls>(take()), (PushPulls{1, {3, 4}}));
  break_stream();
  membership_.push_pulls(1, {3, 4}, now_);
  EXPECT_FALSE(happened<PushPulls>()) << "another coordinator asks again";
}

TEST_F(MembershipTest, ACommittedPlanIsAcknowledgedAgain) {
  begin_job();
  tell(Prepare{plan(2)});
  tell(Commit{2});
  take();
  tell(Prepare{plan(2)});
  const std::vector<Action> actions = take();
  EXPECT_EQ(last<Acknowledgement>(actions)->epoch, 2u);
  EXPECT_FALSE(last<Prepare>(actions).has_value());
  tell(Commit{2});
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(MembershipTest, ATensorWaitsForALostCoordinatorForAsLongAsThePlanTimeout) {
  begin_job();
  break_stream();
  membership_.declare({tensor("late")}, {}, now_);
  pass(absl::Minutes(9));
  EXPECT_EQ(failure(), "none");
  pass(absl::Minutes(2));
  EXPECT_THAT(failure(), HasSubstr("tensor 'late' has waited for a plan for 10m"));
}

TEST_F(MembershipTest, DeclaresUnplannedTensorsAgain) {
  begin_job();
  membership_.declare({tensor("a"), tensor("b")}, {{"b", ReduceOp::kSum}}, now_);
  EXPECT_EQ(last<Declare>(take())->tensors.size(), 2u);
  tell(Prepare{plan(2, {tensor("a")})});
  tell(Commit{2});
  break_stream();
  next_attempt();
  come_in();
  const std::optional<Declare> again = last<Declare>(take());
  ASSERT_TRUE(again.has_value());
  EXPECT_THAT(again->tensors, ElementsAre(tensor("b")));
  EXPECT_THAT(again->operations, ElementsAre(plan::Operation{"b", ReduceOp::kSum}));
}

TEST_F(MembershipTest, OperationsAreCollectedWhileEarlierMessagesAreUnwritten) {
  begin_job();
  membership_.declare({tensor("a"), tensor("b"), tensor("c")}, {{"a", ReduceOp::kSum}}, now_);
  EXPECT_THAT(last<Declare>(take())->operations, ElementsAre(plan::Operation{"a", ReduceOp::kSum}));
  membership_.declare({}, {{"b", ReduceOp::kSum}}, now_);
  membership_.on_tick(false, now_);
  membership_.declare({}, {{"c", ReduceOp::kAverage}}, now_);
  membership_.on_tick(false, now_);
  EXPECT_THAT(take(), IsEmpty());
  membership_.on_tick(true, now_);
  EXPECT_THAT(last<Declare>(take())->operations,
              ElementsAre(plan::Operation{"b", ReduceOp::kSum}, plan::Operation{"c", ReduceOp::kAverage}));
  membership_.on_tick(true, now_);
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(MembershipTest, OwnersCompareTheOperationsOfTensorsThatAPlanHas) {
  begin_job();
  membership_.declare({tensor("a"), tensor("b")}, {}, now_);
  membership_.declare({}, {{"a", ReduceOp::kSum}}, now_);
  tell(Prepare{plan(2, {tensor("a"), tensor("b")})});
  tell(Commit{2});
  take();
  membership_.declare({}, {{"b", ReduceOp::kSum}}, now_);
  membership_.on_tick(true, now_);
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(MembershipTest, RepeatsLeaveUntilItIsAcknowledged) {
  begin_job();
  membership_.leave(absl::OkStatus(), false, kLeaveTimeout, now_);
  EXPECT_EQ(last<Leave>(take())->epoch, 1u);
  break_stream();
  EXPECT_LE(next_attempt(), absl::Milliseconds(200));
  come_in();
  EXPECT_TRUE(happened<Leave>());
  tell(Goodbye{});
  const std::vector<Action> actions = take();
  EXPECT_TRUE(last<Left>(actions).has_value());
  EXPECT_FALSE(last<Finished>(actions).has_value());
}

TEST_F(MembershipTest, ALeavingMemberWaitsForASlowCoordinatorUntilTheDeadline) {
  begin_job();
  membership_.leave(absl::OkStatus(), false, kLeaveTimeout, now_);
  for (int i = 0; i < 19; ++i) {
    pass(absl::Milliseconds(500));
    membership_.on_heard(now_);
  }
  EXPECT_FALSE(happened<Left>());
  pass(absl::Seconds(1));
  EXPECT_TRUE(happened<Left>());
}

TEST_F(MembershipTest, ALeavingMemberWaitsForAReplacementOfALostCoordinator) {
  begin_job();
  membership_.leave(absl::OkStatus(), false, kLeaveTimeout, now_);
  pass(absl::Seconds(5));
  EXPECT_FALSE(happened<Left>());
  break_stream();
  pass(kLeaveTimeout - absl::Milliseconds(100));
  EXPECT_FALSE(happened<Left>());
  pass(absl::Milliseconds(200));
  EXPECT_TRUE(happened<Left>());
}

TEST_F(MembershipTest, AnEndedRoundIsLeftByTheDeadline) {
  begin_job();
  tell(Regroup{absl::AbortedError("worker 0 is lost")});
  membership_.leave(absl::OkStatus(), true, kLeaveTimeout, now_);
  EXPECT_LT(membership_.tick_interval(), absl::Seconds(1));
  pass(absl::Seconds(9));
  EXPECT_FALSE(happened<Left>());
  pass(absl::Seconds(2));
  EXPECT_TRUE(happened<Left>());
}

TEST_F(MembershipTest, APlanThatArrivesWhileItLeavesKeepsTheMember) {
  begin_job();
  membership_.leave(absl::OkStatus(), false, kLeaveTimeout, now_);
  tell(Prepare{plan(2)});
  tell(Commit{2});
  EXPECT_TRUE(happened<Stays>());
  membership_.leave(absl::OkStatus(), false, kLeaveTimeout, now_);
  EXPECT_EQ(last<Leave>(take())->epoch, 2u);
}

TEST_F(MembershipTest, AnEndedRoundIsLeftOnItsStream) {
  begin_job();
  tell(Regroup{absl::AbortedError("worker 0 is lost")});
  EXPECT_TRUE(happened<Regroup>());
  membership_.leave(absl::OkStatus(), true, kLeaveTimeout, now_);
  EXPECT_TRUE(last<Leave>(take())->again);
  tell(Goodbye{});
  EXPECT_TRUE(happened<Left>());
}

TEST_F(MembershipTest, ReportsAreSentWithHeartbeats) {
  begin_job();
  pass(absl::Milliseconds(1000));
  EXPECT_TRUE(happened<Heartbeat>());
  membership_.report({7, 70, 0.5});
  membership_.on_tick(true, now_ += absl::Milliseconds(500));
  EXPECT_FALSE(happened<Report>());
  membership_.on_tick(false, now_ += absl::Milliseconds(600));
  EXPECT_FALSE(happened<Report>()) << "nothing is added while earlier messages are unwritten";
  membership_.on_tick(true, now_);
  EXPECT_EQ(last<Report>(take())->steps, 7u);
}

TEST_F(MembershipTest, UrgentReportsAreSentAtOnce) {
  begin_job();
  membership_.report_now({7, 70, 0.5}, now_);
  EXPECT_EQ(last<Report>(take())->steps, 7u);
  pass(absl::Milliseconds(1000));
  EXPECT_FALSE(happened<Report>()) << "it was sent already";
}

TEST_F(SummerMembershipTest, ASummerThatTheJobLeftOutFails) {
  begin_job();
  break_stream(absl::AbortedError("left out"));
  EXPECT_EQ(failure(), "left out");
}

TEST_F(SummerMembershipTest, ANewSummerThatOthersMayFollowStaysWithoutTheCoordinator) {
  come_in("");
  tell(Prepare{plan(3)});
  take();
  break_stream();
  const std::vector<Action> actions = take();
  EXPECT_TRUE(last<CoordinatorGone>(actions).has_value());
  EXPECT_FALSE(last<Failed>(actions).has_value());
}

TEST_F(SummerMembershipTest, ASummerOfAJobThatNeverBeganFails) {
  come_in("");
  tell(Prepare{plan(1)});
  break_stream();
  EXPECT_THAT(failure(), HasSubstr("was lost before the job had begun"));
}

TEST_F(SummerMembershipTest, ASummerFollowsPlansWhileItLeaves) {
  begin_job();
  membership_.leave(absl::OkStatus(), false, kLeaveTimeout, now_);
  tell(Prepare{plan(2)});
  tell(Commit{2});
  const std::vector<Action> actions = take();
  EXPECT_TRUE(last<Commit>(actions).has_value());
  EXPECT_FALSE(last<Stays>(actions).has_value());
  tell(Goodbye{});
  EXPECT_TRUE(happened<Finished>());
}

}  // namespace
}  // namespace gleaner::member
