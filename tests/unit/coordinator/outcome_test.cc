#include "coordinator/failures/outcome.h"

#include <gmock/gmock.h>

#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::HasSubstr;

class OutcomeTest : public testing::Test {
 protected:
  OutcomeTest() { seat_all(roster_, options_); }
  // A job of two workers with two local ranks each, and a summer.
  static Options job_with(absl::Duration exit_timeout) {
    Options options = job_of(2, 1, 2);
    options.launcher.exit_timeout = exit_timeout;
    return options;
  }
  static Failure loss(uint32_t seat) { return {absl::UnavailableError("its stream broke"), seat, true}; }
  std::string message() const { return std::string(outcome_.status()->message()); }

  const Options options_ = job_with(absl::Seconds(2));
  Roster roster_{options_};
  Outcome outcome_{&options_, &roster_};
};

TEST_F(OutcomeTest, WithoutALauncherAFailureIsFinalAtOnce) {
  const Options options = job_with(absl::ZeroDuration());
  Outcome outcome(&options, &roster_);
  EXPECT_TRUE(outcome.fail(loss(1), absl::Seconds(1)));
  EXPECT_TRUE(outcome.is_loss());
  EXPECT_EQ(outcome.culprit(), 1u);
  EXPECT_FALSE(outcome.fail({absl::InternalError("later"), 0}, absl::Seconds(1))) << "the first failure stays";
  EXPECT_TRUE(absl::IsUnavailable(*outcome.status()));
  EXPECT_FALSE(outcome.succeed());
}

TEST_F(OutcomeTest, ALossIsPendingUntilTheExitTimeout) {
  EXPECT_FALSE(outcome_.fail(loss(1), absl::Seconds(1)));
  EXPECT_FALSE(outcome_.has_ended());
  EXPECT_TRUE(outcome_.has_failed());
  EXPECT_EQ(outcome_.why_failed().message(), "its stream broke");
  EXPECT_FALSE(outcome_.on_tick(absl::Seconds(2.9)));
  EXPECT_TRUE(outcome_.on_tick(absl::Seconds(3)));
  EXPECT_EQ(message(), "its stream broke");
}

TEST_F(OutcomeTest, AnErrorOtherThanALossIsFinalAtOnce) {
  EXPECT_TRUE(outcome_.fail({absl::InternalError("declared twice"), 1}, absl::Seconds(1)));
  EXPECT_FALSE(outcome_.is_loss());
}

TEST_F(OutcomeTest, AWorkerGetsItsOwnError) {
  const absl::Status own = absl::InvalidArgumentError("ranks differ");
  outcome_.fail({absl::InvalidArgumentError("worker 0 can't go on: ranks differ"), 1, false, own}, absl::Seconds(1));
  for (const uint32_t seat : {0, 1}) EXPECT_EQ(outcome_.status_for(seat), own);
  for (const uint32_t seat : {2, 3, 4}) EXPECT_EQ(outcome_.status_for(seat), *outcome_.status());
}

TEST_F(OutcomeTest, AWorkerGetsItsOwnErrorAfterALoss) {
  const absl::Status own = absl::InvalidArgumentError("ranks differ");
  outcome_.fail(loss(2), absl::Seconds(1));
  outcome_.fail({absl::InvalidArgumentError("worker 0 can't go on: ranks differ"), 0, false, own}, absl::Seconds(1));
  EXPECT_EQ(outcome_.status_for(1), own);
  EXPECT_EQ(outcome_.status_for(3).message(), "its stream broke");
}

TEST_F(OutcomeTest, AnErrorAfterALossEndsTheJobWithTheLoss) {
  outcome_.fail(loss(1), absl::Seconds(1));
  EXPECT_FALSE(outcome_.fail(loss(2), absl::Seconds(1))) << "another loss may be a consequence";
  EXPECT_TRUE(outcome_.fail({absl::InternalError("later"), 0}, absl::Seconds(1)));
  EXPECT_EQ(message(), "its stream broke");
  EXPECT_EQ(outcome_.culprit(), 1u);
}

TEST_F(OutcomeTest, AnExitExplainsALossOfItsOwnWorkerOnly) {
  outcome_.fail(loss(0), absl::Seconds(1));
  EXPECT_FALSE(outcome_.on_exited(2, {false, "exited with status 1"}, true, "", absl::Seconds(1)));
  EXPECT_TRUE(outcome_.on_exited(1, {false, "was killed"}, true, "; its last report was of 3 steps", absl::Seconds(1)));
  EXPECT_THAT(message(),
              testing::AllOf(HasSubstr("worker 0 (local rank 1)"), HasSubstr("was killed; its last report")));
  EXPECT_EQ(outcome_.culprit(), 1u);
}

TEST_F(OutcomeTest, ARankThatLeftCleanlyAndExitsInErrorIsTheCause) {
  outcome_.on_left_cleanly(2);
  for (const uint32_t seat : {0, 2}) roster_.vacate(seat, Seat::State::kLeft, {});
  outcome_.fail(loss(0), absl::Seconds(1));
  EXPECT_FALSE(outcome_.on_exited(0, {false, "exited with status 1"}, true, "", absl::Seconds(1)))
      << "rank 2 may be the cause";
  EXPECT_TRUE(outcome_.on_exited(2, {false, "exited with status 3"}, true, "", absl::Seconds(1)));
  EXPECT_EQ(outcome_.culprit(), 2u);
  EXPECT_THAT(message(), HasSubstr("left the job, and its process exited with status 3"));
}

TEST_F(OutcomeTest, TheExitOfAPresentRankIsPendingWhileARankThatLeftCleanlyRuns) {
  for (const bool is_stream_broken : {false, true}) {
    for (const bool leaver_fails : {false, true}) {
      Roster roster(options_);
      seat_all(roster, options_);
      Outcome outcome(&options_, &roster);
      outcome.on_left_cleanly(2);
      roster.vacate(2, Seat::State::kLeft, {});
      if (is_stream_broken) outcome.fail(loss(0), absl::Seconds(1));
      EXPECT_FALSE(outcome.on_exited(0, {false, "exited with status 1"}, true, "", absl::Seconds(1)));
      EXPECT_FALSE(outcome.on_exited(1, {false, "exited with status 2"}, true, "", absl::Seconds(1))) << "too late";
      EXPECT_TRUE(outcome.has_failed());
      EXPECT_TRUE(
          outcome.on_exited(2, {!leaver_fails, leaver_fails ? "failed" : "succeeded"}, true, "", absl::Seconds(1)));
      EXPECT_EQ(outcome.culprit(), leaver_fails ? 2u : 0u);
      EXPECT_THAT(std::string(outcome.status()->message()), HasSubstr(leaver_fails ? "failed" : "status 1"));
    }
  }
}

TEST_F(OutcomeTest, TheExitOfAPresentRankIsFinalAfterTheExitTimeout) {
  outcome_.on_left_cleanly(2);
  roster_.vacate(2, Seat::State::kLeft, {});
  EXPECT_FALSE(outcome_.on_exited(0, {false, "was killed"}, true, "", absl::Seconds(1)));
  EXPECT_FALSE(outcome_.on_tick(absl::Seconds(2.9)));
  EXPECT_TRUE(outcome_.on_tick(absl::Seconds(3)));
  EXPECT_THAT(message(), HasSubstr("worker 0 (local rank 0) at 10.0.0.0:7000 is lost: its process was killed"));
}

TEST_F(OutcomeTest, ExitsBeforeTheStartAreAnErrorOnceARankHasJoined) {
  Roster empty(options_);
  Outcome outcome(&options_, &empty);
  EXPECT_FALSE(outcome.on_exited(3, {true, "exited with status 0"}, false, "", absl::Seconds(1)));
  EXPECT_FALSE(outcome.check_exits_before_start());
  outcome.on_rank_joined();
  EXPECT_TRUE(outcome.check_exits_before_start());
  EXPECT_EQ(outcome.culprit(), 3u);
}

TEST_F(OutcomeTest, KnowsWhichLocalRankOfAWorkerLeft) {
  outcome_.on_left_cleanly(2);
  EXPECT_EQ(outcome_.local_rank_that_left(3), 2u);
  EXPECT_EQ(outcome_.local_rank_that_left(1), std::nullopt);
}

}  // namespace
}  // namespace gleaner::coordinator
