// Tests of jobs whose launcher reports how the ranks' processes end: every member must learn the true cause of a
// failure.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/fleet.h"

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Options launched(uint32_t workers, uint32_t local_ranks = 1) {
  Options options;
  options.workers = workers;
  options.local_ranks = local_ranks;
  options.launcher.exit_timeout = kExitTimeout;
  return options;
}

class Exits : public testing::Test {
 protected:
  static void exited(Fleet& fleet, uint32_t seat, const RankExit& exit) {
    const Identity& who = fleet.members[seat].identity;
    fleet.core->on_exited(*who.index, who.local_rank, exit, fleet.actions);
    fleet.collect();
  }
  static void fails(Fleet& fleet, uint32_t seat, const std::string& why) {
    fleet.core->on_left(fleet.members[seat].stream, absl::UnavailableError(why), 1, fleet.now, fleet.actions);
    fleet.collect();
  }
  static constexpr char kKilled[] = "was killed by signal 9 (SIGKILL)";
};

TEST_F(Exits, ABrokenStreamIsExplainedByItsProcess) {
  Fleet fleet(launched(2));
  fleet.start();
  fleet.cut(1);
  fleet.settle();
  EXPECT_EQ(fleet.outcome(), "none") << "the launcher may still report an exit status";
  exited(fleet, 1, {false, kKilled});
  fleet.settle();
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr(kKilled)));
  EXPECT_EQ(fleet.core->outcome().culprit(), 1u);
  EXPECT_THAT(std::string(fleet.members[0].failure.message()), HasSubstr(kKilled))
      << "other members get the exit status, too";
}

TEST_F(Exits, AnExitMayBeReportedBeforeTheStreamBreaks) {
  Fleet fleet(launched(2));
  fleet.start();
  exited(fleet, 1, {false, "exited with status 7"});
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("exited with status 7")));
}

TEST_F(Exits, WithoutAnExitStatusTheLossIsTheCause) {
  Fleet fleet(launched(2));
  fleet.start();
  fleet.cut(1);
  fleet.members[1].stream = 0;
  fleet.pass(kExitTimeout + absl::Milliseconds(200));
  EXPECT_THAT(fleet.outcome(), HasSubstr("worker 1"));
  EXPECT_EQ(fleet.core->outcome().culprit(), 1u);
}

TEST_F(Exits, ARankThatLeftAndThenExitedInErrorIsTheCause) {
  for (const bool victim_ends_first : {false, true}) {
    Fleet fleet(launched(2));
    fleet.start();
    fleet.leave(1);
    fleet.settle();
    fails(fleet, 0, "worker 1 has left");
    if (victim_ends_first) exited(fleet, 0, {false, "exited with status 1"});
    EXPECT_EQ(fleet.outcome(), "none");
    exited(fleet, 1, {false, "exited with status 3"});
    EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("exited with status 3")));
    EXPECT_EQ(fleet.core->outcome().culprit(), 1u);
  }
}

TEST_F(Exits, ARankThatLeftIsTheCauseEvenIfTheExitOfAnotherIsSeenFirst) {
  for (const bool is_stream_broken : {false, true}) {
    Fleet fleet(launched(2));
    fleet.start();
    fleet.leave(1);
    fleet.settle();
    if (is_stream_broken) fleet.cut(0);
    exited(fleet, 0, {false, "exited with status 1"});
    EXPECT_EQ(fleet.outcome(), "none") << "worker 1 may be the cause";
    exited(fleet, 1, {false, "exited with status 3"});
    EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("exited with status 3")));
    EXPECT_EQ(fleet.core->outcome().culprit(), 1u);
  }
}

TEST_F(Exits, ATickThatEndsTheJobDoesNothingElse) {
  Options optional_plan = launched(2);
  optional_plan.change_timeout = kExitTimeout;
  Fleet fleet(optional_plan);
  fleet.start();
  ASSERT_EQ(fleet.core->set_bandwidth(Role::kWorker, 0, 5e8, fleet.now, fleet.actions), absl::OkStatus());
  ASSERT_NE(fleet.core->planning().agreement().proposed_epoch(), 0u);
  fleet.pass(absl::Milliseconds(100));
  fleet.cut(1);
  fleet.pass(kExitTimeout - absl::Milliseconds(100));
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.pass(absl::Milliseconds(100));  // now both the pending failure and the optional plan are due
  EXPECT_THAT(fleet.outcome(), HasSubstr("worker 1"));
  EXPECT_EQ(fleet.core->planning().changes().withdrawn, 0u);
}

TEST_F(Exits, AnOptionalPlanThatOnlyALostRankHasNotAcknowledgedIsWithdrawnAndNoRankIsBlamed) {
  Options optional_plan = launched(2);
  optional_plan.launcher.exit_timeout = absl::Seconds(20);
  optional_plan.change_timeout = absl::Seconds(1);
  Fleet fleet(optional_plan);
  fleet.start();
  ASSERT_EQ(fleet.core->set_bandwidth(Role::kWorker, 0, 5e8, fleet.now, fleet.actions), absl::OkStatus());
  fleet.collect();
  while (fleet.deliver_to(0) || fleet.deliver_from(0)) {
  }
  fails(fleet, 1, "out of luck");
  ASSERT_NE(fleet.core->planning().agreement().proposed_epoch(), 0u);
  fleet.pass(absl::Seconds(1.5));
  EXPECT_EQ(fleet.core->planning().changes().withdrawn, 0u);
  EXPECT_EQ(fleet.outcome(), "none");
  exited(fleet, 1, {false, "exited with status 7"});
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("out of luck"), HasSubstr("status 7")));
}

TEST_F(Exits, ARankThatLeftAndExitedCleanlyIsNotTheCause) {
  Fleet fleet(launched(2));
  fleet.start();
  fleet.leave(1);
  fleet.settle();
  fails(fleet, 0, "out of luck");
  exited(fleet, 1, {true, "exited with status 0"});
  exited(fleet, 0, {false, "exited with status 1"});
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 0"), HasSubstr("out of luck"), HasSubstr("status 1")));
  EXPECT_EQ(fleet.core->outcome().culprit(), 0u);
}

TEST_F(Exits, RanksThatEndBecauseOfALossAreNotTheCause) {
  Fleet fleet(launched(3));
  fleet.start();
  fleet.cut(1);
  fails(fleet, 2, "worker 1 is out of reach");
  exited(fleet, 2, {false, "exited with status 1"});
  EXPECT_EQ(fleet.outcome(), "none");
  exited(fleet, 1, {false, kKilled});
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr(kKilled)));
  EXPECT_EQ(fleet.core->outcome().culprit(), 1u);
}

TEST_F(Exits, AnotherLocalRankMayBeTheCause) {
  Fleet fleet(launched(2, 2));
  fleet.start();
  fleet.cut(2);  // worker 1's local rank 0, whose address stands for the worker
  exited(fleet, 3, {false, kKilled});
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1 (local rank 1)"), HasSubstr(kKilled)));
  EXPECT_EQ(fleet.core->outcome().culprit(), 3u);
}

TEST_F(Exits, ExitingWithoutLeavingIsALoss) {
  Fleet fleet(launched(2));
  fleet.start();
  exited(fleet, 1, {true, "exited with status 0"});
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("without leaving the job")));
}

TEST_F(Exits, AProcessThatEndsBeforeItJoinsFailsTheJob) {
  for (const bool before : {false, true}) {
    Fleet fleet(launched(2));
    if (before) exited(fleet, 1, {true, "exited with status 0"});
    EXPECT_EQ(fleet.outcome(), "none") << "possibly no process wants to join";
    fleet.connect(0);
    if (!before) exited(fleet, 1, {true, "exited with status 0"});
    fleet.settle();
    EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1 exited with status 0"), HasSubstr("before the job had")));
    EXPECT_EQ(fleet.core->outcome().culprit(), 1u);
  }
  Fleet fleet(launched(2));
  exited(fleet, 1, {false, "exited with status 7"});
  EXPECT_THAT(fleet.outcome(), HasSubstr("worker 1 exited with status 7 before it had joined"));
}

TEST_F(Exits, TheJobBeginsWithoutASummerThatEnds) {
  for (const bool joined : {false, true}) {
    Options with_summer = launched(2);
    with_summer.summers = 1;
    Fleet fleet(with_summer);
    if (joined) fleet.connect(2);
    fleet.connect(0);
    fleet.settle();
    fleet.ended(2, absl::UnavailableError(absl::StrCat("its process ", kKilled)));
    EXPECT_EQ(fleet.outcome(), "none");
    fleet.connect(1);
    fleet.settle();
    EXPECT_EQ(fleet.core->plan().epoch, 1u);
    EXPECT_EQ(fleet.core->plan().summers(), 0u);
  }
}

TEST_F(Exits, ALocalRankThatFinishesEarlyIsNamed) {
  for (const bool seen_first : {false, true}) {
    Fleet fleet(launched(1, 2));
    fleet.start();
    fleet.leave(1);
    fleet.settle();
    if (seen_first) exited(fleet, 1, {true, "exited with status 0"});
    fails(fleet, 0, "local rank 1 of worker 0 has left the job");
    if (!seen_first) exited(fleet, 1, {true, "exited with status 0"});
    EXPECT_THAT(fleet.outcome(),
                AllOf(HasSubstr("worker 0 (local rank 1) finished"), HasSubstr("worker 0 (local rank 0) was at step 1"),
                      HasSubstr("local rank 1 of worker 0 has left the job")));
    EXPECT_EQ(fleet.core->outcome().culprit(), 1u);
  }
}

TEST_F(Exits, ExitsAfterASuccessfulJobHaveNoEffect) {
  Fleet fleet(launched(2));
  fleet.start();
  fleet.leave(0);
  fleet.settle();
  exited(fleet, 0, {true, "exited with status 0"});
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.leave(1);
  fleet.settle();
  EXPECT_EQ(fleet.outcome(), "well");
  exited(fleet, 1, {false, "exited with status 1"});
  EXPECT_EQ(fleet.outcome(), "well");
  EXPECT_THAT(fleet.outcome(), Not(HasSubstr("status")));
}

}  // namespace
}  // namespace gleaner::coordinator
