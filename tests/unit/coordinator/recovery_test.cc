// Coordinators that die at the worst moments, and members that come back to the next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/partitioner.h"
#include "tests/unit/coordinator/fleet.h"

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// A fleet of two workers and a summer gets a plan of tensor 'a', whose Commit reaches only one of them.
void plan_tensor_and_commit_at(Fleet& fleet, uint32_t only) {
  fleet.declare_all("a");
  fleet.deliver_from(0);
  fleet.deliver_from(1);
  for (uint32_t seat = 0; seat < 3; ++seat) fleet.deliver_to(seat);    // Prepare
  for (uint32_t seat = 0; seat < 3; ++seat) fleet.deliver_from(seat);  // Acknowledge
  fleet.deliver_to(only);                                              // Commit
}

TEST(Recovery, GoesOnWhenEverybodyIsBack) {
  Fleet fleet(options(2, 1, 2));
  fleet.start();
  fleet.declare_all("a");
  fleet.settle();
  fleet.restart();
  EXPECT_EQ(fleet.core->phase(), Phase::kGathering);
  fleet.connect(3);
  EXPECT_EQ(fleet.core->phase(), Phase::kRecovering);
  fleet.settle();
  fleet.connect_all();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_EQ(fleet.core->plan(), *fleet.members[0].committed);
  EXPECT_EQ(fleet.members[0].session, "session 1") << "it stays that of the job";
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(2u));

  fleet.declare_all("b");
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(3u));
  EXPECT_TRUE(fleet.has_tensor(4, "a") && fleet.has_tensor(4, "b"));
  for (uint32_t seat = 0; seat < 4; ++seat) fleet.leave(seat);
  fleet.settle();
  EXPECT_EQ(fleet.outcome(), "well");
  EXPECT_TRUE(fleet.members[4].over);
}

TEST(Recovery, DeclarationsMadeMeanwhileArePlanned) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.declare(0, {{"a", 10, DataType::kFloat32, 0}});
  fleet.settle();
  fleet.restart();  // which alone knew of worker 0's declaration
  fleet.declare(1, {{"a", 10, DataType::kFloat32, 0}});
  fleet.connect_all();
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(2u));
  EXPECT_TRUE(fleet.has_tensor(2, "a"));
}

TEST(Recovery, DiesBetweenCommits) {
  Fleet fleet(options(2, 1));
  fleet.start();
  plan_tensor_and_commit_at(fleet, 1);
  ASSERT_THAT(epochs(fleet), ElementsAre(1, 2, 1));
  fleet.restart();
  fleet.connect(0);
  fleet.settle();  // asked for epoch 1
  fleet.connect(2);
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRecovering);
  fleet.connect(1);
  EXPECT_EQ(fleet.core->phase(), Phase::kRecovering) << "epoch 2 is not known yet";
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_THAT(epochs(fleet), Each(2u));
}

TEST(Recovery, DiesBeforeTheFirstCommitHasReachedAll) {
  for (const bool had_committed_first : {true, false}) {
    Fleet fleet(options(2, 0));
    fleet.connect_all();
    for (int i = 0; i < 2; ++i) {
      for (uint32_t seat = 0; seat < 2; ++seat) fleet.deliver_to(seat);  // Welcome, Prepare
    }
    for (uint32_t seat = 0; seat < 2; ++seat) fleet.deliver_from(seat);
    fleet.deliver_to(1);
    ASSERT_THAT(epochs(fleet), ElementsAre(0, 1));
    fleet.restart();
    fleet.connect(had_committed_first ? 1 : 0);
    fleet.connect(had_committed_first ? 0 : 1);
    fleet.settle();
    EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
    EXPECT_THAT(epochs(fleet), ElementsAre(1, 1));
    EXPECT_EQ(fleet.members[0].session, "session 1");
  }
}

TEST(Recovery, PlanThatNobodyCommittedIsSkippedOver) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.declare_all("a");
  fleet.deliver_from(0);
  fleet.deliver_from(1);
  fleet.deliver_to(0);  // Prepare of epoch 2, to one of them
  ASSERT_EQ(fleet.members[0].prepared->epoch, 2u);
  fleet.restart();
  fleet.declare_all("b");
  fleet.connect_all();
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(3u)) << "epoch 2 could be mistaken for the one that was given up";
  EXPECT_TRUE(fleet.has_tensor(0, "a") && fleet.has_tensor(0, "b"));
}

TEST(Recovery, FirstPlanThatNobodyCommittedIsMadeAnew) {
  Fleet fleet(options(2, 1));
  fleet.connect_all();
  for (int i = 0; i < 2; ++i) fleet.deliver_to(1);  // Welcome, Prepare
  ASSERT_EQ(fleet.members[1].prepared->epoch, 1u);
  fleet.restart();
  fleet.connect_all();
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_THAT(epochs(fleet), Each(2u));
  for (const auto& member : fleet.members) EXPECT_EQ(member.session, "session 2");
}

TEST(Recovery, FreshJobUnderANewCoordinatorBeginsAsAny) {
  Fleet fleet(options(2, 1));
  fleet.restart();
  fleet.start();
  EXPECT_THAT(epochs(fleet), Each(1u));
}

TEST(Recovery, DiesTwice) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.declare_all("a");
  fleet.settle();
  fleet.restart();
  fleet.connect(0);
  fleet.settle();
  fleet.restart();  // with worker 0 back, and nobody else
  fleet.connect_all();
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  fleet.declare_all("b");
  fleet.deliver_from(0);
  fleet.deliver_from(1);
  fleet.deliver_to(2);  // Prepare of epoch 3
  fleet.restart();
  fleet.connect_all();
  for (uint32_t seat = 0; seat < 3; ++seat) {
    while (fleet.deliver_from(seat) || fleet.deliver_to(seat)) {
      if (fleet.members[seat].prepared != nullptr && fleet.members[seat].prepared->epoch == 4) break;
    }
  }
  fleet.restart();  // with epoch 3 and 4 prepared here and there
  fleet.connect_all();
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(5u));
  EXPECT_TRUE(fleet.has_tensor(0, "b"));
}

TEST(Recovery, WhoIsAskedAndGoesIsReplaced) {
  Fleet fleet(options(3, 0));
  fleet.start();
  fleet.restart();
  fleet.connect(0);
  EXPECT_TRUE(std::holds_alternative<Recall>(fleet.members[0].inbox.back()));
  fleet.connect(1);
  fleet.cut(0);
  EXPECT_TRUE(std::holds_alternative<Recall>(fleet.members[1].inbox.back()));
  fleet.connect(2);
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRecovering);
  fleet.connect(0);
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
}

TEST(Recovery, MembersThatLeaveMeanwhileAreNotWaitedFor) {
  Fleet fleet(options(3, 1));
  fleet.start();
  fleet.restart();
  fleet.ended(0);  // its pod succeeded while there was no coordinator
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.members[0].left = true;
  fleet.connect(1);
  fleet.connect(3);
  fleet.settle();
  fleet.connect(2);
  fleet.leave(1);  // during recovery
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  fleet.leave(2);
  fleet.settle();
  EXPECT_EQ(fleet.outcome(), "well");
  EXPECT_TRUE(fleet.members[3].over);
}

TEST(Recovery, OnlyTheOneWithThePlanLeaves) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.restart();
  fleet.connect(0);
  fleet.leave(0);
  fleet.members[0].inbox.clear();  // it never answers Recall
  fleet.deliver_from(0);
  fleet.cut(0);  // and does not wait
  fleet.connect(1);
  fleet.connect(2);
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
}

TEST(Recovery, JobThatEndedMeanwhileHasEndedWell) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.restart();
  fleet.ended(0);
  fleet.ended(1);
  EXPECT_EQ(fleet.outcome(), "well");
  fleet.connect(2);
  fleet.settle();
  EXPECT_TRUE(fleet.members[2].over) << "the summer hears of it";
  EXPECT_EQ(fleet.members[2].failure, absl::OkStatus());
}

TEST(Recovery, WorkerThatFailedMeanwhileFailsTheJob) {
  Fleet fleet(options(3, 0));
  fleet.start();
  fleet.restart();
  fleet.connect(0);
  fleet.ended(2, absl::UnavailableError("its machine is gone"));
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 2"), HasSubstr("its machine is gone")));
  EXPECT_EQ(fleet.core->culprit(), 2u);
  fleet.connect(1);
  fleet.settle();
  EXPECT_THAT(std::string(fleet.members[1].failure.message()), HasSubstr("its machine is gone"))
      << "who comes late, too";
}

TEST(Recovery, WhoDoesNotComeBackIsNamed) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.restart();
  fleet.connect(0);
  fleet.connect(2);
  fleet.settle();
  fleet.pass(absl::Seconds(59));
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.pass(absl::Seconds(2));
  EXPECT_THAT(fleet.outcome(), HasSubstr("worker 1 did not come back within 1m"));
  EXPECT_EQ(fleet.core->culprit(), 1u);
}

TEST(Recovery, SummerThatDoesNotComeBackIsDoneWithout) {
  for (const bool is_known_to_have_ended : {false, true}) {
    Fleet fleet(options(2, 1));
    fleet.start();
    fleet.declare_all("a");
    fleet.settle();
    fleet.restart();
    if (is_known_to_have_ended) fleet.ended(2, absl::UnavailableError("evicted"));
    fleet.connect(0);
    fleet.connect(1);
    fleet.settle();
    if (!is_known_to_have_ended) {
      fleet.pass(absl::Seconds(5));
      EXPECT_EQ(fleet.core->phase(), Phase::kRecovering);
      fleet.pass(absl::Seconds(2));
    }
    fleet.settle();
    EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
    EXPECT_EQ(fleet.outcome(), "none");
    EXPECT_GT(fleet.epoch(0), 2u);
    EXPECT_FALSE(fleet.members[0].committed->members[2].is_here());
    EXPECT_EQ(plan::owned_bytes(*fleet.members[0].committed)[2], 0u);
  }
}

TEST(Recovery, SummerThatIsOutOfReachMeanwhileIsDoneWithout) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.add(3);  // comes later: the next coordinator does not know of its place
  fleet.connect(3);
  fleet.settle();
  fleet.declare_all("a");
  fleet.settle();
  ASSERT_TRUE(fleet.members[0].committed->members[3].is_here());
  fleet.restart();
  fleet.connect(0);
  fleet.core->on_fault(fleet.members[0].stream, 3, absl::UnavailableError("out of reach"), fleet.now, fleet.actions);
  fleet.collect();
  fleet.connect_all();
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_FALSE(fleet.members[0].committed->members[3].is_here());
  EXPECT_TRUE(fleet.members[0].committed->members[2].is_here());
}

// A leader that was paused wakes: what it had made up its mind to do is of no use to anybody any more.
TEST(Recovery, CoordinatorThatWasReplacedIsNotFollowedAnyMore) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.declare_all("a");
  for (uint32_t seat = 0; seat < 3; ++seat) {
    while (fleet.deliver_from(seat)) {
    }
  }
  for (uint32_t seat = 0; seat < 3; ++seat) {
    while (fleet.deliver_to(seat)) {
    }
  }
  for (uint32_t seat = 0; seat < 3; ++seat) {
    while (fleet.deliver_from(seat)) {
    }
    fleet.members[seat].inbox.clear();  // commits are lost
  }
  ASSERT_EQ(fleet.core->plan().epoch, 2u);
  const std::unique_ptr<Core> old = std::move(fleet.core);
  fleet.restart();
  fleet.connect_all();
  fleet.settle();
  ASSERT_EQ(fleet.core->phase(), Phase::kRunning);
  Actions actions;
  old->on_joined(900, fleet.members[0].identity, fleet.resume_of(fleet.members[0]), fleet.now, actions);
  ASSERT_EQ(actions.sends.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<Rejected>(actions.sends[0].message));
  EXPECT_THAT(std::string(std::get<Rejected>(actions.sends[0].message).why.message()),
              HasSubstr("another coordinator"));
  EXPECT_TRUE(absl::IsUnavailable(std::get<Rejected>(actions.sends[0].message).why)) << "so that it looks for that one";
}

// Terms tell coordinators apart; where they do not, what a member has heard of does.
TEST(Recovery, MemberThatIsFurtherThanItsCoordinatorIsNotTakenBack) {
  Fleet fleet(options(2, 1));
  fleet.start();
  std::optional<Resume> resume = fleet.resume_of(fleet.members[0]);
  resume->committed = fleet.core->plan().epoch + 1;
  Actions actions;
  fleet.core->on_joined(900, fleet.members[0].identity, resume, fleet.now, actions);
  ASSERT_EQ(actions.sends.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<Rejected>(actions.sends[0].message));
  const absl::Status& why = std::get<Rejected>(actions.sends[0].message).why;
  EXPECT_TRUE(absl::IsUnavailable(why)) << "so that it looks for another";
  EXPECT_THAT(std::string(why.message()), HasSubstr("another coordinator has gone on"));
  EXPECT_EQ(fleet.outcome(), "none");
}

TEST(Recovery, WorkerThatWasStartedAnewFailsTheJob) {
  for (const bool comes_first : {true, false}) {
    Fleet fleet(options(2, 1));
    fleet.start();
    fleet.restart();
    if (comes_first) fleet.connect(1, std::nullopt);
    fleet.connect(0);
    if (!comes_first) fleet.connect(1, std::nullopt);
    EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("started anew")));
    EXPECT_EQ(fleet.core->culprit(), 1u);
  }
}

TEST(Recovery, SummerThatThePlanDoesWithoutHurtsNobody) {
  Fleet fleet(options(1, 2));
  fleet.connect(0);
  fleet.connect(1);
  ASSERT_EQ(fleet.core->set_summers(1, fleet.now, fleet.actions), absl::OkStatus());
  fleet.collect();
  fleet.settle();
  ASSERT_THAT(epochs(fleet), ElementsAre(1, 1, 0));
  fleet.restart();
  fleet.connect(2);  // the one that came too late
  fleet.settle();
  fleet.connect(0);
  fleet.deliver_to(2);
  fleet.deliver_to(2);
  EXPECT_TRUE(absl::IsUnavailable(fleet.members[2].rejection)) << fleet.members[2].rejection;
  fleet.connect(2);
  fleet.settle();
  fleet.connect(1);
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  fleet.connect(2);
  fleet.settle();
  EXPECT_EQ(fleet.members[2].rejection, absl::OkStatus());
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_THAT(epochs(fleet), Each(2u)) << "it is one that comes under way";
}

TEST(Recovery, SummersThatWereGivenOtherPlacesComeBackToTheirs) {
  Fleet fleet(options(1, 2));
  for (const uint32_t seat : {1, 2}) fleet.members[seat].identity.index.reset();
  fleet.connect_all();
  for (uint32_t seat = 0; seat < 3; ++seat) {
    while (fleet.members[seat].prepared == nullptr) ASSERT_TRUE(fleet.deliver_to(seat));
    fleet.deliver_from(seat);
  }
  fleet.deliver_to(1);  // Commit
  ASSERT_THAT(epochs(fleet), ElementsAre(0, 1, 0));
  fleet.restart();
  fleet.connect(0);
  fleet.connect(2);  // and is given the first place, which is the other's
  fleet.connect(1);
  EXPECT_EQ(fleet.core->phase(), Phase::kRecovering);
  EXPECT_EQ(fleet.members[1].rejection, absl::OkStatus()) << fleet.members[1].rejection;
  while (fleet.deliver_to(2)) {
  }
  EXPECT_TRUE(absl::IsUnavailable(fleet.members[2].rejection)) << fleet.members[2].rejection;
  fleet.settle();
  fleet.pass(absl::Seconds(7));
  fleet.settle();
  fleet.connect(2);
  fleet.settle();
  EXPECT_TRUE(absl::IsAborted(fleet.members[2].rejection)) << fleet.members[2].rejection;
  fleet.connect(2);  // as a new one
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_THAT(epochs(fleet), Each(fleet.core->plan().epoch));
}

TEST(Recovery, WhoeverTakesThePlaceOfASummerThatWasTurnedAwayIsAnotherMember) {
  Fleet fleet(options(2, 1));
  fleet.members[2].identity.index.reset();
  fleet.start();
  const uint32_t before = fleet.core->plan().members[2].since;
  plan_tensor_and_commit_at(fleet, 2);
  ASSERT_THAT(epochs(fleet), ElementsAre(1, 1, 2));
  fleet.restart();
  fleet.connect_all();
  fleet.settle();
  ASSERT_TRUE(absl::IsAborted(fleet.members[2].rejection)) << "no rank knows that plan";
  const Identity anew = fleet.members[2].identity;
  fleet.members[2] = {anew};
  fleet.members[2].identity.address = "10.0.0.9:7000";
  fleet.connect(2);
  fleet.settle();
  const plan::Member& summer = fleet.core->plan().members[2];
  EXPECT_EQ(summer.address, "10.0.0.9:7000");
  EXPECT_GT(summer.since, before) << "workers would keep their connections to the other";
}

TEST(Recovery, ImpostorsAreNotLetIn) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.restart();
  fleet.connect(0);
  const auto rejection = [&](uint32_t seat, auto change) {
    Resume resume = *fleet.resume_of(fleet.members[1]);
    resume.member = fleet.members[seat].member;
    change(resume);
    const Fleet::Member before = fleet.members[seat];
    fleet.connect(seat, resume);
    while (fleet.deliver_to(seat)) continue;
    const absl::Status status = fleet.members[seat].rejection;
    fleet.members[seat] = before;
    return std::string(status.message());
  };
  EXPECT_THAT(rejection(0, [](Resume&) {}), HasSubstr("has joined already"));
  EXPECT_THAT(rejection(1, [](Resume& resume) { resume.member = 0; }), HasSubstr("somebody else's place"));
  EXPECT_THAT(rejection(1, [](Resume& resume) { resume.member = 2; }), HasSubstr("somebody else's place"));
  EXPECT_THAT(rejection(2, [](Resume& resume) { resume.member = 0; }), HasSubstr("somebody else's place"));
  EXPECT_THAT(rejection(2, [](Resume& resume) { resume.member = 1u << 30; }), HasSubstr("somebody else's place"));
  EXPECT_THAT(rejection(1, [](Resume& resume) { resume.session = "other"; }), HasSubstr("another run"));
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.settle();
  fleet.connect_all();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
}

TEST(Recovery, PlansThatDifferFailTheJob) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.restart();
  fleet.connect(0);
  Resume other = *fleet.resume_of(fleet.members[1]);
  other.plan_digest = "of another plan";
  fleet.connect(1, other);
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1 at 10.0.0.1:7000 and worker 0 at 10.0.0.0:7000"),
                                     HasSubstr("different plans of epoch 1")));
}

TEST(Recovery, PlanThatIsNotTheOneSaidFailsTheJob) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.restart();
  fleet.connect(0);
  plan::Plan plan = *fleet.members[0].committed;
  plan.members[2].address = "10.6.6.6:666";
  fleet.core->on_recalled(fleet.members[0].stream, plan, fleet.now, fleet.actions);
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 0"), HasSubstr("not the one it said")));
}

TEST(Recovery, EndpointsStayAsTheyWere) {
  Fleet fleet(options(2, 1));
  fleet.start();
  const std::vector<plan::Member> before = fleet.members[0].committed->members;
  EXPECT_THAT(before[2].endpoints, testing::ElementsAre("shm://host.1/shm/2"));
  fleet.restart();
  fleet.connect_all();
  fleet.settle();
  EXPECT_EQ(fleet.core->plan().members, before);
  EXPECT_EQ(fleet.core->proposed_epoch(), 0u) << "nothing to change";
}

TEST(Recovery, SummersAreThoseOfThePlanWhateverTheOptionsSay) {
  for (const uint32_t believed : {0u, 3u}) {
    Fleet fleet(options(1, 2));
    fleet.start();
    Options given = fleet.options_;
    given.summers = believed;
    fleet.restart();
    fleet.core = std::make_unique<Core>(given, fleet.now, Origin{"new", true, 0, 2});
    fleet.connect(2);
    fleet.settle();
    fleet.connect_all();
    fleet.settle();
    EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
    EXPECT_EQ(fleet.core->summers(), 2u);
    fleet.ended(2, absl::UnavailableError("gone"));
    EXPECT_EQ(fleet.outcome(), "none");
    EXPECT_EQ(fleet.core->changes().lost, 1u);
  }
}

TEST(Recovery, CoordinatorWithoutThatGiftRefusesAndTheJobGoesOnWithoutIt) {
  Fleet fleet(options(2, 0));
  fleet.start();
  fleet.restart(false);
  fleet.connect(0);
  fleet.settle();
  EXPECT_TRUE(absl::IsFailedPrecondition(fleet.members[0].rejection));
  EXPECT_THAT(std::string(fleet.members[0].rejection.message()), HasSubstr("can't take up a job"));
  EXPECT_EQ(fleet.members[0].failure, absl::OkStatus());
}

}  // namespace
}  // namespace gleaner::coordinator
