// Tests of members that return after their streams broke, and of jobs that begin with another number of summers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/fleet.h"

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

Options patient(uint32_t workers, uint32_t summers) {
  Options result = options(workers, summers);
  result.return_timeout = absl::Seconds(5);
  return result;
}

TEST(Return, AReturningMemberGetsMissedPlans) {
  Fleet fleet(patient(2, 1));
  fleet.start();
  fleet.declare_all("a");
  fleet.deliver_from(0);
  fleet.deliver_from(1);
  for (uint32_t seat = 0; seat < 3; ++seat) fleet.deliver_to(seat);
  for (uint32_t seat = 0; seat < 3; ++seat) fleet.deliver_from(seat);
  fleet.cut(1);  // while Commit is in flight
  fleet.settle();
  fleet.declare_all("b");
  fleet.settle();
  EXPECT_THAT(epochs(fleet), ElementsAre(2, 1, 2));
  fleet.connect(1);
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(3u));
  fleet.pass(absl::Seconds(20));
  EXPECT_EQ(fleet.outcome(), "none");
}

TEST(Return, AProposedPlanIsSentAgain) {
  Fleet fleet(patient(2, 0));
  fleet.start();
  fleet.declare_all("a");
  fleet.deliver_from(0);
  fleet.deliver_from(1);
  fleet.cut(1);  // while Prepare is in flight
  fleet.settle();
  EXPECT_THAT(epochs(fleet), ElementsAre(1, 1));
  fleet.connect(1);
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(2u));
}

TEST(Return, AMemberThatDoesNotReturnInTimeIsLost) {
  Fleet fleet(patient(2, 0));
  fleet.start();
  fleet.cut(1);
  fleet.pass(absl::Seconds(4));
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.pass(absl::Seconds(2));
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("did not come back within 5s")));
  EXPECT_EQ(fleet.core->outcome().culprit(), 1u);
}

TEST(Return, ARestartedMemberIsLostAtOnce) {
  Fleet fleet(patient(2, 0));
  fleet.start();
  fleet.cut(1);
  fleet.connect(1, std::nullopt);
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("started again")));
}

TEST(Return, BeforeTheStartABrokenStreamIsNoLoss) {
  Fleet fleet(patient(2, 0));
  fleet.connect(0);
  fleet.cut(0);
  fleet.connect(1);
  EXPECT_EQ(fleet.core->phase(), Phase::kGathering);
  fleet.connect(0);
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(1u));

  Fleet later(patient(2, 0));
  later.connect_all();
  later.deliver_to(0);  // Welcome
  later.cut(0);         // while Prepare is in flight
  later.connect(0);
  later.settle();
  EXPECT_THAT(epochs(later), Each(1u));
}

TEST(Return, ASummerWithoutAnIndexReturnsToItsPlace) {
  Fleet fleet(patient(1, 2));
  for (const uint32_t seat : {1, 2}) fleet.members[seat].identity.index.reset();
  fleet.connect(1);
  fleet.settle();
  fleet.cut(1);
  fleet.connect(1);
  fleet.connect(2);
  fleet.settle();
  EXPECT_EQ(fleet.members[2].rejection, absl::OkStatus()) << "a place is free";
  fleet.connect(0);
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(1u));
}

TEST(Return, AProtocolErrorIsALossAtOnce) {
  Fleet fleet(patient(2, 0));
  fleet.start();
  fleet.core->on_disconnected(fleet.members[1].stream, absl::InvalidArgumentError("it joined twice"), fleet.actions);
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("joined twice")));
}

TEST(Return, ACoordinatorBehindItsMembersRejectsThem) {
  Fleet fleet(patient(2, 0));
  fleet.start();
  Resume ahead = *fleet.resume_of(fleet.members[1]);
  ahead.committed = 7;
  fleet.cut(1);
  fleet.connect(1, ahead);
  fleet.settle();
  EXPECT_TRUE(absl::IsUnavailable(fleet.members[1].rejection)) << fleet.members[1].rejection;
  EXPECT_EQ(fleet.outcome(), "none");
}

TEST(Summers, TheJobStartsWithTheSummersThatHaveJoined) {
  Fleet fleet(options(1, 4));
  fleet.connect(0);
  fleet.connect(2);  // summers 1 and 3
  fleet.connect(4);
  ASSERT_EQ(fleet.core->set_summers(2, fleet.now, fleet.actions), absl::OkStatus());
  fleet.collect();
  fleet.settle();
  const auto plan = fleet.members[0].committed;
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->members[1].address, "10.0.0.2:7000");
  EXPECT_EQ(plan->members[2].address, "10.0.0.4:7000");
  EXPECT_EQ(fleet.members[4].member, 2u) << "the summer gets its new place";
  EXPECT_TRUE(absl::IsFailedPrecondition(fleet.core->set_summers(1, fleet.now, fleet.actions)));

  // The next coordinator knows the summers by the same indices.
  fleet.restart();
  fleet.connect(4);
  fleet.settle();
  fleet.connect(0);
  fleet.connect(2);
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  fleet.ended(4, absl::UnavailableError("evicted"));
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.settle();
  EXPECT_TRUE(fleet.members[0].committed->members[1].is_here());
  EXPECT_FALSE(fleet.members[0].committed->members[2].is_here()) << "the place of summer 3 is empty";
}

TEST(Summers, TooManySummersAreRejectedAndMissingOnesAwaited) {
  Fleet fleet(options(1, 2));
  fleet.connect(1);
  fleet.connect(2);
  fleet.settle();
  ASSERT_EQ(fleet.core->set_summers(1, fleet.now, fleet.actions), absl::OkStatus());
  fleet.collect();
  fleet.settle();
  EXPECT_TRUE(absl::IsFailedPrecondition(fleet.members[2].rejection));
  ASSERT_EQ(fleet.core->set_summers(3, fleet.now, fleet.actions), absl::OkStatus());
  fleet.add(3);
  fleet.connect(0);
  fleet.connect(2);
  fleet.settle();
  EXPECT_EQ(fleet.epoch(0), 0u);
  fleet.connect(3);
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(1u));
  EXPECT_TRUE(absl::IsInvalidArgument(Fleet(options(1, 0)).core->set_summers(1u << 20, fleet.now, fleet.actions)));
}

TEST(Ended, BeforeTheJobBegan) {
  Fleet early(options(2, 0));
  early.connect(0);
  early.ended(1);
  EXPECT_THAT(early.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("before the job had begun")));

  Fleet undecided(options(2, 0));  // worker 1 may have ended after a complete run
  undecided.restart();
  undecided.ended(1);
  EXPECT_EQ(undecided.outcome(), "none");
  undecided.connect(0);
  EXPECT_THAT(undecided.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("before the job had begun")));
}

TEST(Ended, AnEndedSummerIsLeftOut) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.ended(2);
  fleet.settle();
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_FALSE(fleet.members[0].committed->members[2].is_here());
}

TEST(Ended, AWorkerThatLeftAndThenFailedDoesNotFailTheJob) {
  Fleet fleet(options(2, 0));
  fleet.start();
  fleet.leave(0);
  fleet.settle();
  fleet.ended(0, absl::UnavailableError("exit code 1"));
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.ended(1);
  EXPECT_EQ(fleet.outcome(), "well");
}

}  // namespace
}  // namespace gleaner::coordinator
