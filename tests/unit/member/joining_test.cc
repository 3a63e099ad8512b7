#include "common/member/joining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/proto/plan_codec.h"

namespace gleaner::member {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kJoinTime = absl::Seconds(1000);

class JoiningTest : public testing::Test {
 protected:
  explicit JoiningTest(bool is_summer = false)
      : joining_({is_summer, "10.0.0.1:7000", absl::Minutes(1), {}}, [] { return 1.0; }) {
    joining_.begin(kJoinTime);
    joining_.connect(kJoinTime);
  }
  static control::Welcome welcome(const std::string& session = "s") {
    control::Welcome welcome;
    welcome.member = 1;
    welcome.workers = 2;
    welcome.summers = 1;
    welcome.session = session;
    welcome.term = 3;
    welcome.deadline = absl::Seconds(10);
    return welcome;
  }
  static plan::Plan plan(uint32_t epoch) {
    plan::Plan plan;
    plan.epoch = epoch;
    return plan;
  }
  void join(const std::string& session = "s") {
    ASSERT_TRUE(joining_.on_challenged(kJoinTime));
    ASSERT_EQ(joining_.on_welcome(welcome(session), false, kJoinTime), Joining::Place::kNew);
  }
  static bool retries(const Joining::Reaction& reaction) { return std::holds_alternative<Joining::Retry>(reaction); }
  static bool gives_up(const Joining::Reaction& reaction) { return std::holds_alternative<Joining::GiveUp>(reaction); }
  static std::string failure(const Joining::Reaction& reaction) {
    const auto* failed = std::get_if<Joining::Fail>(&reaction);
    return failed != nullptr ? std::string(failed->status.message()) : "none";
  }

  Joining joining_;
};

class SummerJoiningTest : public JoiningTest {
 protected:
  SummerJoiningTest() : JoiningTest(true) {}
};

TEST_F(JoiningTest, AnswersOneChallengePerConnection) {
  EXPECT_FALSE(joining_.has_sent_join());
  EXPECT_TRUE(joining_.on_challenged(kJoinTime));
  EXPECT_TRUE(joining_.has_sent_join());
  EXPECT_FALSE(joining_.on_challenged(kJoinTime));
  joining_.connect(kJoinTime);
  EXPECT_TRUE(joining_.on_challenged(kJoinTime));
}

TEST_F(JoiningTest, AttemptsFollowEachOtherAfterPauses) {
  EXPECT_EQ(joining_.next_step(kJoinTime), Joining::Step::kWait);
  joining_.disconnect();
  joining_.retry_later(false, false, kJoinTime);
  EXPECT_EQ(joining_.next_step(kJoinTime + absl::Milliseconds(99)), Joining::Step::kWait);
  EXPECT_EQ(joining_.next_step(kJoinTime + absl::Milliseconds(100)), Joining::Step::kConnect);
}

TEST_F(JoiningTest, ASilentAttemptTimesOut) {
  joining_.on_heard(kJoinTime + absl::Seconds(1));
  EXPECT_EQ(joining_.next_step(kJoinTime + absl::Seconds(21)), Joining::Step::kWait);
  EXPECT_EQ(joining_.next_step(kJoinTime + absl::Seconds(22)), Joining::Step::kTimedOut);
  EXPECT_EQ(joining_.last_failure().message(), "no answer within 20s");
}

TEST_F(JoiningTest, ANewMemberShowsNoState) {
  FollowedPlans plans;
  EXPECT_EQ(joining_.resume(plans), std::nullopt);
  join();
  EXPECT_EQ(joining_.resume(plans), std::nullopt) << "it has no plan";
}

TEST_F(JoiningTest, AReturningMemberShowsItsPlans) {
  join();
  FollowedPlans plans;
  plans.prepare(std::make_shared<const plan::Plan>(plan(1)));
  EXPECT_EQ(joining_.resume(plans), (control::Resume{"s", 0, 1, "", 1, 3}));
  ASSERT_TRUE(plans.commit(1).ok());
  plans.prepare(std::make_shared<const plan::Plan>(plan(2)));
  EXPECT_EQ(joining_.resume(plans), (control::Resume{"s", 1, 2, proto::digest(plan(1)), 1, 3}));
}

TEST_F(JoiningTest, ARepeatedWelcomeGivesTheSamePlace) {
  join();
  control::Welcome again = welcome("another session");
  again.summers = 5;
  EXPECT_EQ(joining_.on_welcome(again, false, kJoinTime), Joining::Place::kUnchanged);
  again.member = 0;
  EXPECT_EQ(joining_.on_welcome(again, false, kJoinTime), Joining::Place::kNew);
  EXPECT_EQ(joining_.welcome()->member, 0u);
}

TEST_F(JoiningTest, AnotherSessionOrNumberAfterTheStartMeansAnotherJob) {
  join();
  EXPECT_EQ(joining_.on_welcome(welcome(), true, kJoinTime), Joining::Place::kUnchanged);
  EXPECT_EQ(joining_.on_welcome(welcome("another"), true, kJoinTime), Joining::Place::kAnotherJob);
  control::Welcome other = welcome();
  other.member = 0;
  EXPECT_EQ(joining_.on_welcome(other, true, kJoinTime), Joining::Place::kAnotherJob);
}

TEST_F(JoiningTest, TransientErrorsAreRetried) {
  joining_.on_challenged(kJoinTime);
  for (const auto code : {absl::StatusCode::kOk, absl::StatusCode::kNotFound, absl::StatusCode::kUnavailable,
                          absl::StatusCode::kCancelled, absl::StatusCode::kResourceExhausted}) {
    EXPECT_TRUE(retries(joining_.on_attempt_failed(absl::Status(code, "not now"), false))) << code;
  }
  EXPECT_EQ(failure(joining_.on_attempt_failed(absl::PermissionDeniedError("wrong token"), false)), "wrong token");
  EXPECT_THAT(failure(joining_.on_attempt_failed(absl::UnimplementedError("?"), false)),
              HasSubstr("10.0.0.1:7000 is not a coordinator of gleaner"));
}

TEST_F(JoiningTest, ErrorsBeforeTheJoinAreRetried) {
  EXPECT_TRUE(retries(joining_.on_attempt_failed(absl::PermissionDeniedError("no"), false)));
  EXPECT_EQ(failure(joining_.on_attempt_failed(absl::FailedPreconditionError("version"), false)), "version");
}

TEST_F(JoiningTest, ATakenSeatMayBeTheMembersOwn) {
  const absl::Status taken = absl::AlreadyExistsError("has joined already");
  joining_.on_challenged(kJoinTime);
  EXPECT_EQ(failure(joining_.on_attempt_failed(taken, false)), "has joined already");
  joining_.retry_later(false, false, kJoinTime);
  joining_.connect(kJoinTime);
  joining_.on_challenged(kJoinTime);
  EXPECT_TRUE(retries(joining_.on_attempt_failed(taken, false))) << "an earlier Join may have reached the coordinator";
}

TEST_F(JoiningTest, AfterTheStartOnlyARefusalForGoodGivesUp) {
  join();
  EXPECT_TRUE(retries(joining_.on_attempt_failed(absl::PermissionDeniedError("not now"), true)));
  EXPECT_TRUE(gives_up(joining_.on_attempt_failed(absl::FailedPreconditionError("started anew"), true)));
}

TEST_F(JoiningTest, ALostCoordinatorWithoutASessionCannotBeReplaced) {
  const absl::Status why = absl::UnavailableError("broken");
  join("");
  EXPECT_THAT(failure(joining_.on_lost(why, false, false)), HasSubstr("was lost before the job had begun: broken"));
  EXPECT_TRUE(gives_up(joining_.on_lost(why, false, true))) << "others may follow the prepared plan";
  EXPECT_TRUE(gives_up(joining_.on_lost(why, true, false)));
}

TEST_F(JoiningTest, ALostCoordinatorWithASessionMayReturn) {
  join();
  EXPECT_TRUE(retries(joining_.on_lost(absl::UnavailableError("broken"), false, false)));
  EXPECT_TRUE(retries(joining_.on_lost(absl::UnavailableError("broken"), true, false)));
}

TEST_F(SummerJoiningTest, ASummerThatTheJobLeftOutFails) {
  join();
  EXPECT_EQ(failure(joining_.on_attempt_failed(absl::AbortedError("left out"), true)), "left out");
}

TEST_F(JoiningTest, AdmissionHasATimeout) {
  const absl::Duration end = kJoinTime + absl::Minutes(1);
  EXPECT_EQ(joining_.check_admission(false, end), absl::OkStatus());
  EXPECT_EQ(joining_.check_admission(true, end + absl::Hours(1)), absl::OkStatus());
  EXPECT_THAT(joining_.check_admission(false, end + absl::Seconds(1)).message(),
              HasSubstr("can't reach the coordinator at 10.0.0.1:7000 within 1m: no answer"));
  joining_.on_challenged(kJoinTime);
  EXPECT_THAT(joining_.check_admission(false, end + absl::Seconds(1)).message(), HasSubstr("has not admitted"));
  joining_.on_welcome(welcome(), false, kJoinTime);
  EXPECT_THAT(joining_.check_admission(false, end + absl::Seconds(1)).message(), HasSubstr("did not return"));
}

TEST_F(JoiningTest, TheStartHasALaterTimeout) {
  EXPECT_EQ(joining_.check_start(kJoinTime + absl::Seconds(63)), absl::OkStatus());
  EXPECT_THAT(joining_.check_start(kJoinTime + absl::Seconds(64)).message(), HasSubstr("did not begin within 1m3s"));
}

TEST_F(JoiningTest, SilenceIsMeasuredWithoutPauses) {
  join();
  EXPECT_EQ(joining_.check_silence(kJoinTime + absl::Seconds(10)), absl::OkStatus());
  EXPECT_EQ(joining_.check_silence(kJoinTime + absl::Seconds(11)).message(), "it has sent no message for 10s");
  joining_.on_pause(absl::Seconds(5));
  EXPECT_EQ(joining_.check_silence(kJoinTime + absl::Seconds(11)), absl::OkStatus());
}

}  // namespace
}  // namespace gleaner::member
