// Tests of coordinators that are lost at difficult moments, and of members that return to the next coordinator.
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

// Plans the tensor 'a' for two workers and a summer, but delivers Commit only to the member in seat `only`.
void plan_tensor_and_commit_at(Fleet& fleet, uint32_t only) {
  fleet.declare_all("a");
  fleet.deliver_from(0);
  fleet.deliver_from(1);
  for (uint32_t seat = 0; seat < 3; ++seat) fleet.deliver_to(seat);    // Prepare
  for (uint32_t seat = 0; seat < 3; ++seat) fleet.deliver_from(seat);  // Acknowledge
  fleet.deliver_to(only);                                              // Commit
}

TEST(Recovery, ContinuesWhenAllMembersHaveReturned) {
  Fleet fleet(options(2, 1, 2));
  fleet.start();
  fleet.declare_all("a");
  fleet.settle();
  fleet.restart();
  EXPECT_EQ(fleet.core->phase(), Phase::kGathering);
  fleet.connect(3);
  EXPECT_EQ(fleet.core->phase(), Phase::kReattaching);
  fleet.settle();
  fleet.connect_all();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_EQ(fleet.core->plan(), *fleet.members[0].committed);
  EXPECT_EQ(fleet.members[0].session, "session 1") << "the session's name does not change";
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

TEST(Recovery, ReturnedMembersAreKnownToHaveThePlan) {
  const auto known = [](const Fleet& fleet) {
    std::vector<uint32_t> epochs_known;
    for (uint32_t seat = 0; seat < 3; ++seat) epochs_known.push_back(fleet.core->roster()[seat].known_epoch());
    return epochs_known;
  };
  for (const bool all_follow_it : {true, false}) {
    Fleet fleet(options(2, 1));
    fleet.start();
    if (all_follow_it) {
      fleet.declare_all("a");
      fleet.settle();
    } else {
      plan_tensor_and_commit_at(fleet, 1);
    }
    fleet.restart();
    fleet.connect_all();
    fleet.settle();
    EXPECT_EQ(fleet.core->plan().epoch, 2u);
    EXPECT_THAT(known(fleet), Each(2u)) << all_follow_it;
  }
}

TEST(Recovery, DeclarationsDuringTheAbsenceArePlanned) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.declare(0, {{"a", 10, DataType::kFloat32, 0}});
  fleet.settle();
  fleet.restart();  // only the lost coordinator knew of worker 0's declaration
  fleet.declare(1, {{"a", 10, DataType::kFloat32, 0}});
  fleet.connect_all();
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(2u));
  EXPECT_TRUE(fleet.has_tensor(2, "a"));
}

TEST(Recovery, TheCoordinatorDiesBetweenCommits) {
  Fleet fleet(options(2, 1));
  fleet.start();
  plan_tensor_and_commit_at(fleet, 1);
  ASSERT_THAT(epochs(fleet), ElementsAre(1, 2, 1));
  fleet.restart();
  fleet.connect(0);
  fleet.settle();  // the coordinator asks it for the plan of epoch 1
  fleet.connect(2);
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kReattaching);
  fleet.connect(1);
  EXPECT_EQ(fleet.core->phase(), Phase::kReattaching) << "epoch 2 is not known yet";
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_THAT(epochs(fleet), Each(2u));
}

TEST(Recovery, TheCoordinatorDiesBeforeTheFirstCommitHasReachedAll) {
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

TEST(Recovery, APlanThatNoMemberCommittedIsSkipped) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.declare_all("a");
  fleet.deliver_from(0);
  fleet.deliver_from(1);
  fleet.deliver_to(0);  // Prepare of epoch 2, to only one member
  ASSERT_EQ(fleet.members[0].prepared->epoch, 2u);
  fleet.restart();
  fleet.declare_all("b");
  fleet.connect_all();
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(3u)) << "epoch 2 could be confused with the withdrawn plan of epoch 2";
  EXPECT_TRUE(fleet.has_tensor(0, "a") && fleet.has_tensor(0, "b"));
}

TEST(Recovery, AFirstPlanThatNoMemberCommittedIsMadeAgain) {
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

TEST(Recovery, AFreshJobUnderANewCoordinatorBeginsNormally) {
  Fleet fleet(options(2, 1));
  fleet.restart();
  fleet.start();
  EXPECT_THAT(epochs(fleet), Each(1u));
}

TEST(Recovery, TheCoordinatorDiesTwice) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.declare_all("a");
  fleet.settle();
  fleet.restart();
  fleet.connect(0);
  fleet.settle();
  fleet.restart();  // when only worker 0 has returned
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
  fleet.restart();  // when some members have prepared epoch 3 and others epoch 4
  fleet.connect_all();
  fleet.settle();
  EXPECT_THAT(epochs(fleet), Each(5u));
  EXPECT_TRUE(fleet.has_tensor(0, "b"));
}

TEST(Recovery, AnotherMemberIsAskedIfTheAskedOneIsLost) {
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
  EXPECT_EQ(fleet.core->phase(), Phase::kReattaching);
  fleet.connect(0);
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
}

TEST(Recovery, TheJobDoesNotWaitForMembersThatLeftMeanwhile) {
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

TEST(Recovery, ASummerThatWantsToLeaveMeanwhileLeavesWithTheNextPlan) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.restart();
  fleet.connect(0);
  fleet.connect(2);
  fleet.settle();
  fleet.leave(2);
  fleet.deliver_from(2);
  EXPECT_FALSE(fleet.members[2].over) << "the summer may still own partitions";
  fleet.connect(1);
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_TRUE(fleet.members[2].over);
  EXPECT_EQ(fleet.core->planning().changes().left, 1u);
  EXPECT_EQ(fleet.core->planning().changes().lost, 0u);
  EXPECT_EQ(fleet.core->plan().summers(), 0u);
}

TEST(Recovery, TheMemberThatWasAskedForThePlanLeaves) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.restart();
  fleet.connect(0);
  fleet.leave(0);
  fleet.members[0].inbox.clear();  // it never answers Recall
  fleet.deliver_from(0);
  fleet.cut(0);  // its stream breaks before that
  fleet.connect(1);
  fleet.connect(2);
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
}

TEST(Recovery, AJobThatEndedMeanwhileHasSucceeded) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.restart();
  fleet.ended(0);
  fleet.ended(1);
  EXPECT_EQ(fleet.outcome(), "well");
  fleet.connect(2);
  fleet.settle();
  EXPECT_TRUE(fleet.members[2].over) << "the summer gets the outcome";
  EXPECT_EQ(fleet.members[2].failure, absl::OkStatus());
}

TEST(Recovery, AWorkerThatFailedMeanwhileFailsTheJob) {
  Fleet fleet(options(3, 0));
  fleet.start();
  fleet.restart();
  fleet.connect(0);
  fleet.ended(2, absl::UnavailableError("its machine is gone"));
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 2"), HasSubstr("its machine is gone")));
  EXPECT_EQ(fleet.core->outcome().culprit(), 2u);
  fleet.connect(1);
  fleet.settle();
  EXPECT_THAT(std::string(fleet.members[1].failure.message()), HasSubstr("its machine is gone"))
      << "a late member gets the outcome, too";
}

TEST(Recovery, AMemberThatDoesNotReturnIsNamed) {
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
  EXPECT_EQ(fleet.core->outcome().culprit(), 1u);
}

TEST(Recovery, ASummerThatDoesNotReturnIsLeftOut) {
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
      EXPECT_EQ(fleet.core->phase(), Phase::kReattaching);
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

TEST(Recovery, AnUnreachableSummerIsLeftOut) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.add(3);  // it joins late, so the next coordinator does not know its place
  fleet.connect(3);
  fleet.settle();
  fleet.declare_all("a");
  fleet.settle();
  ASSERT_TRUE(fleet.members[0].committed->members[3].is_here());
  fleet.restart();
  fleet.connect(0);
  fleet.fault(0, 3);
  fleet.connect_all();
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_FALSE(fleet.members[0].committed->members[3].is_here());
  EXPECT_TRUE(fleet.members[0].committed->members[2].is_here());
}

TEST(Recovery, AReportAboutAnEarlierSummerDoesNotConcernItsSuccessor) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.declare_all("a");
  fleet.settle();
  fleet.fault(0, 2);
  fleet.settle();
  fleet.connect(2);
  fleet.settle();
  ASSERT_TRUE(fleet.members[0].committed->members[2].is_here());
  fleet.restart();
  fleet.connect(0);
  fleet.fault(0, 2, 1);
  fleet.connect_all();
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_EQ(fleet.core->planning().changes().lost, 0u);
  EXPECT_TRUE(fleet.members[0].committed->members[2].is_here());
}

// A coordinator that was paused while another took its place continues. Members must not follow it any more.
TEST(Recovery, AReplacedCoordinatorIsNotFollowed) {
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
    fleet.members[seat].inbox.clear();  // the commits are lost
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
  EXPECT_TRUE(absl::IsUnavailable(std::get<Rejected>(actions.sends[0].message).why))
      << "the member then looks for the newer coordinator";
}

// If the terms of two coordinators are equal, the epochs that a member knows show which coordinator is newer.
TEST(Recovery, AMemberAheadOfItsCoordinatorIsNotAdmitted) {
  Fleet fleet(options(2, 1));
  fleet.start();
  std::optional<Resume> resume = fleet.resume_of(fleet.members[0]);
  resume->committed = fleet.core->plan().epoch + 1;
  Actions actions;
  fleet.core->on_joined(900, fleet.members[0].identity, resume, fleet.now, actions);
  ASSERT_EQ(actions.sends.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<Rejected>(actions.sends[0].message));
  const absl::Status& why = std::get<Rejected>(actions.sends[0].message).why;
  EXPECT_TRUE(absl::IsUnavailable(why)) << "the member then looks for another coordinator";
  EXPECT_THAT(std::string(why.message()), HasSubstr("another coordinator has gone on"));
  EXPECT_EQ(fleet.outcome(), "none");
}

TEST(Recovery, ARestartedWorkerFailsTheJob) {
  for (const bool comes_first : {true, false}) {
    Fleet fleet(options(2, 1));
    fleet.start();
    fleet.restart();
    if (comes_first) fleet.connect(1, std::nullopt);
    fleet.connect(0);
    if (!comes_first) fleet.connect(1, std::nullopt);
    EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("started again")));
    EXPECT_EQ(fleet.core->outcome().culprit(), 1u);
  }
}

TEST(Recovery, ASummerOutsideThePlanIsRejectedWithoutEffectOnMembers) {
  Fleet fleet(options(1, 2));
  fleet.connect(0);
  fleet.connect(1);
  ASSERT_EQ(fleet.core->set_summers(1, fleet.now, fleet.actions), absl::OkStatus());
  fleet.collect();
  fleet.settle();
  ASSERT_THAT(epochs(fleet), ElementsAre(1, 1, 0));
  fleet.restart();
  fleet.connect(2);  // the summer that came too late
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
  EXPECT_THAT(epochs(fleet), Each(2u)) << "the summer joins the running job";
}

TEST(Recovery, SummersReturnToTheirEarlierPlaces) {
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
  fleet.connect(2);  // it is given the first place, which belongs to the other summer
  fleet.connect(1);
  EXPECT_EQ(fleet.core->phase(), Phase::kReattaching);
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
  fleet.connect(2);  // as a new member
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_THAT(epochs(fleet), Each(fleet.core->plan().epoch));
}

TEST(Recovery, ASummerInThePlaceOfARejectedSummerIsANewMember) {
  Fleet fleet(options(2, 1));
  fleet.members[2].identity.index.reset();
  fleet.start();
  const uint32_t before = fleet.core->plan().members[2].since;
  plan_tensor_and_commit_at(fleet, 2);
  ASSERT_THAT(epochs(fleet), ElementsAre(1, 1, 2));
  fleet.restart();
  fleet.connect_all();
  fleet.settle();
  ASSERT_TRUE(absl::IsAborted(fleet.members[2].rejection)) << "no rank knows the summer's plan";
  const Identity anew = fleet.members[2].identity;
  fleet.members[2] = {anew};
  fleet.members[2].identity.address = "10.0.0.9:7000";
  fleet.connect(2);
  fleet.settle();
  const plan::Member& summer = fleet.core->plan().members[2];
  EXPECT_EQ(summer.address, "10.0.0.9:7000");
  EXPECT_GT(summer.since, before) << "otherwise workers would keep connections to the earlier summer";
}

TEST(Recovery, ImpostorsAreRejected) {
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
  EXPECT_THAT(rejection(1, [](Resume& resume) { resume.member = 0; }), HasSubstr("belongs to another member"));
  EXPECT_THAT(rejection(1, [](Resume& resume) { resume.member = 2; }), HasSubstr("belongs to another member"));
  EXPECT_THAT(rejection(2, [](Resume& resume) { resume.member = 0; }), HasSubstr("belongs to another member"));
  EXPECT_THAT(rejection(2, [](Resume& resume) { resume.member = 1u << 30; }), HasSubstr("belongs to another member"));
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

TEST(Recovery, APlanOtherThanTheStatedOneFailsTheJob) {
  Fleet fleet(options(2, 1));
  fleet.start();
  fleet.restart();
  fleet.connect(0);
  plan::Plan plan = *fleet.members[0].committed;
  plan.members[2].address = "10.6.6.6:666";
  fleet.core->on_recalled(fleet.members[0].stream, plan, fleet.now, fleet.actions);
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 0"), HasSubstr("not the one it said")));
}

TEST(Recovery, EndpointsDoNotChange) {
  Fleet fleet(options(2, 1));
  fleet.start();
  const std::vector<plan::Member> before = fleet.members[0].committed->members;
  EXPECT_THAT(before[2].endpoints, testing::ElementsAre("shm://host.1/shm/2"));
  fleet.restart();
  fleet.connect_all();
  fleet.settle();
  EXPECT_EQ(fleet.core->plan().members, before);
  EXPECT_EQ(fleet.core->planning().agreement().proposed_epoch(), 0u) << "there is no change to propose";
}

TEST(Recovery, TheSummersOfThePlanOverrideTheOptions) {
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
    EXPECT_EQ(fleet.core->roster().summers(), 2u);
    fleet.ended(2, absl::UnavailableError("gone"));
    EXPECT_EQ(fleet.outcome(), "none");
    EXPECT_EQ(fleet.core->planning().changes().lost, 1u);
  }
}

TEST(Recovery, ACoordinatorThatMayNotResumeRefusesAndTheJobContinuesWithoutIt) {
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
