// Tests of CPU summers that join, leave and are lost while a job runs.
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

Options small_partitions(uint32_t workers, uint32_t summers) {
  Options result = options(workers, summers);
  result.return_timeout = absl::Seconds(5);
  result.bits_per_second = 1e9;
  result.partition_bytes = 128;
  return result;
}

// Returns the members that own partitions in the plan that worker 0 follows.
std::vector<uint32_t> owners(const Fleet& fleet) {
  std::vector<uint32_t> result;
  const std::vector<uint64_t> bytes = plan::owned_bytes(*fleet.members[0].committed);
  for (uint32_t member = 0; member < bytes.size(); ++member) {
    if (bytes[member] > 0) result.push_back(member);
  }
  return result;
}

// Three workers and two summers (members 3 and 4), which all own parts of one tensor.
class ChangesTest : public testing::Test {
 protected:
  ChangesTest() {
    fleet.start();
    fleet.declare_all("a");
    fleet.settle();
    EXPECT_THAT(epochs(fleet), Each(2u));
    EXPECT_THAT(owners(fleet), ElementsAre(0, 1, 2, 3, 4));
  }
  // Lets time pass. The members in the seats of `silent` send nothing and receive nothing.
  void pass_without(absl::Duration time, std::vector<uint32_t> silent) {
    for (const absl::Duration end = fleet.now + time; fleet.now < end;) {
      fleet.now += absl::Milliseconds(100);
      for (uint32_t seat = 0; seat < fleet.members.size(); ++seat) {
        const bool speaks = std::find(silent.begin(), silent.end(), seat) == silent.end();
        if (speaks && fleet.members[seat].stream != 0) fleet.core->on_heartbeat(fleet.members[seat].stream, fleet.now);
      }
      fleet.core->on_tick(fleet.now, fleet.actions);
      fleet.collect();
      for (uint32_t seat = 0; seat < fleet.members.size(); ++seat) {
        if (std::find(silent.begin(), silent.end(), seat) != silent.end()) continue;
        while (fleet.deliver_to(seat) || fleet.deliver_from(seat)) {
        }
      }
    }
  }
  Fleet fleet{small_partitions(3, 2)};
};

TEST_F(ChangesTest, ASilentSummerIsLeftOutWithinASecond) {
  pass_without(absl::Milliseconds(900), {4});
  EXPECT_EQ(fleet.core->planning().changes().lost, 0u);
  pass_without(absl::Milliseconds(500), {4});
  EXPECT_EQ(fleet.core->planning().changes().lost, 1u);
  EXPECT_EQ(fleet.core->planning().changes().recovered, 1u);
  EXPECT_THAT(owners(fleet), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.settle();
  EXPECT_TRUE(absl::IsAborted(fleet.members[4].rejection)) << fleet.members[4].rejection;
}

TEST_F(ChangesTest, PartitionsOfALostSummerMoveFirstAndAllAreReassignedAfterwards) {
  const auto before = fleet.members[0].committed;
  fleet.fault(0, 4);
  for (uint32_t seat = 0; seat < 4; ++seat) fleet.deliver_to(seat);
  const auto first = fleet.members[0].prepared;
  ASSERT_NE(first, nullptr);
  for (size_t i = 0; i < before->partitions.size(); ++i) {
    const bool lost = before->partitions[i].owner == 4;
    EXPECT_EQ(first->partitions[i].since, lost ? 3u : 2u);
    EXPECT_EQ(first->partitions[i].owner == before->partitions[i].owner, !lost);
  }
  fleet.settle();
  EXPECT_EQ(fleet.epoch(0), 4u);
  EXPECT_EQ(fleet.core->planning().changes().moved, 1u);
  EXPECT_FALSE(fleet.members[0].committed->members[4].is_here());
}

TEST_F(ChangesTest, ALateReportAboutALostSummerDoesNotConcernItsSuccessor) {
  fleet.fault(0, 4);
  fleet.settle();
  ASSERT_TRUE(absl::IsAborted(fleet.members[4].rejection));
  fleet.connect(4);
  fleet.fault(1, 4, 2);
  EXPECT_EQ(fleet.core->planning().changes().lost, 1u) << "the successor is not in a plan yet";
  fleet.settle();
  ASSERT_TRUE(fleet.members[1].committed->members[4].is_here());
  fleet.fault(1, 4, 2);
  EXPECT_EQ(fleet.core->planning().changes().lost, 1u);
  EXPECT_NE(fleet.members[4].stream, 0u);
  fleet.fault(1, 4);
  EXPECT_EQ(fleet.core->planning().changes().lost, 2u) << "under the present plan the report is about the successor";
}

TEST_F(ChangesTest, AllSummersMayBeLostEvenWhileAPlanIsProposed) {
  fleet.fault(0, 3);
  fleet.deliver_to(0);
  fleet.deliver_from(0);
  fleet.deliver_to(4);
  fleet.fault(1, 4);
  fleet.settle();
  EXPECT_THAT(owners(fleet), ElementsAre(0, 1, 2));
  EXPECT_EQ(fleet.core->planning().changes().lost, 2u);
  EXPECT_EQ(fleet.outcome(), "none");
}

TEST_F(ChangesTest, SeveralMembersMayRefuseAnOptionalPlan) {
  EXPECT_EQ(fleet.core->set_bandwidth(Role::kWorker, 0, 5e8, fleet.now, fleet.actions), absl::OkStatus());
  fleet.collect();
  ASSERT_EQ(fleet.core->planning().agreement().proposed_epoch(), 3u);
  for (const uint32_t seat : {0, 1, 4}) {
    fleet.core->on_refused(fleet.members[seat].stream, 3, absl::ResourceExhaustedError("no memory"), fleet.now,
                           fleet.actions);
  }
  fleet.collect();
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_EQ(fleet.core->planning().changes().withdrawn, 1u);
  EXPECT_EQ(fleet.core->planning().changes().lost, 0u);
}

TEST_F(ChangesTest, ASummerReleasedBeforeItIsInThePlanDelaysNoMember) {
  fleet.add(5);
  fleet.connect(5);
  ASSERT_EQ(fleet.core->planning().agreement().proposed_epoch(), 3u);
  EXPECT_EQ(fleet.core->release_summer(2, fleet.now, fleet.actions), absl::OkStatus());
  fleet.collect();
  fleet.settle();
  EXPECT_TRUE(fleet.members[5].over);
  pass_without(absl::Seconds(4), {});
  EXPECT_EQ(fleet.core->planning().changes().withdrawn, 0u);
  EXPECT_EQ(fleet.core->planning().agreement().proposed_epoch(), 0u);
  EXPECT_THAT(owners(fleet), ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(ChangesTest, ASummerWhoseStreamBreaksMayReturnInTime) {
  fleet.cut(4);
  pass_without(absl::Milliseconds(500), {4});
  fleet.connect(4);
  fleet.settle();
  pass_without(absl::Seconds(2), {});
  EXPECT_EQ(fleet.core->planning().changes().lost, 0u);
  EXPECT_EQ(fleet.epoch(0), 2u);
  fleet.cut(4);
  pass_without(absl::Seconds(2), {4});
  EXPECT_EQ(fleet.core->planning().changes().lost, 1u);
  fleet.connect(4);
  fleet.settle();
  EXPECT_TRUE(absl::IsAborted(fleet.members[4].rejection)) << fleet.members[4].rejection;
}

TEST_F(ChangesTest, TimeLostToRecoveriesIsCounted) {
  fleet.fault(0, 4);
  fleet.now += absl::Milliseconds(300);
  fleet.settle();
  EXPECT_EQ(fleet.core->planning().changes().recovered, 1u);
  EXPECT_DOUBLE_EQ(fleet.core->planning().changes().recovery_seconds, 0.3);
}

TEST(SummersBeforeTheBeginning, AnUnexpectedSummerIsToldToRetryLater) {
  Fleet fleet(small_partitions(1, 1));
  fleet.restart();
  fleet.add(5);
  fleet.members.back().identity.index = 4;
  fleet.connect(2);
  fleet.settle();
  EXPECT_TRUE(absl::IsUnavailable(fleet.members[2].rejection)) << fleet.members[2].rejection;
  fleet.connect(0);
  fleet.connect(1);
  fleet.settle();
  ASSERT_EQ(fleet.core->plan().epoch, 1u);
  fleet.connect(2);
  fleet.settle();
  EXPECT_EQ(fleet.core->plan().summers(), 2u);
}

TEST_F(ChangesTest, AJoiningSummerGetsItsShare) {
  fleet.add(5);
  fleet.connect(5);
  fleet.settle();
  EXPECT_THAT(owners(fleet), ElementsAre(3, 4, 5)) << "with as many summers as workers the summers own all partitions";
  EXPECT_EQ(fleet.epoch(5), 3u);
  EXPECT_EQ(fleet.core->planning().changes().came, 1u);
  for (const plan::Partition& partition : fleet.members[0].committed->partitions) {
    EXPECT_TRUE(partition.owner != 5 || partition.since == 3);
  }
}

TEST_F(ChangesTest, AJoiningSummerMayTakeThePlaceOfALostSummer) {
  fleet.fault(0, 3);
  fleet.settle();
  fleet.add(5);
  fleet.members[5].identity.index = std::nullopt;
  fleet.connect(5);
  fleet.settle();
  EXPECT_EQ(fleet.members[5].member, 3u);
  EXPECT_EQ(fleet.members[0].committed->members.size(), 5u);
  EXPECT_GT(fleet.members[0].committed->members[3].since, 2u);
  EXPECT_THAT(owners(fleet), ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(ChangesTest, ASummerThatAsksToLeaveGetsGoodbyeOnceAPlanOmitsIt) {
  fleet.leave(4);
  fleet.deliver_from(4);
  EXPECT_FALSE(fleet.members[4].over);
  fleet.settle();
  EXPECT_TRUE(fleet.members[4].over);
  EXPECT_THAT(owners(fleet), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(fleet.core->planning().changes().left, 1u);
  EXPECT_EQ(fleet.core->planning().changes().lost, 0u);
}

TEST_F(ChangesTest, AReleasedSummerGetsGoodbyeToo) {
  ASSERT_EQ(fleet.core->release_summer(1, fleet.now, fleet.actions), absl::OkStatus());
  fleet.collect();
  fleet.settle();
  EXPECT_TRUE(fleet.members[4].over);
  EXPECT_THAT(owners(fleet), ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(absl::IsNotFound(fleet.core->release_summer(1, fleet.now, fleet.actions)));
}

TEST_F(ChangesTest, AChangedBandwidthChangesTheShare) {
  const std::vector<uint64_t> before = plan::owned_bytes(*fleet.members[0].committed);
  ASSERT_EQ(fleet.core->set_bandwidth(Role::kSummer, 0, 1e8, fleet.now, fleet.actions), absl::OkStatus());
  fleet.collect();
  fleet.settle();
  EXPECT_EQ(fleet.epoch(0), 3u);
  EXPECT_LT(plan::owned_bytes(*fleet.members[0].committed)[3], before[3] / 2);
  EXPECT_TRUE(absl::IsNotFound(fleet.core->set_bandwidth(Role::kSummer, 9, 1e8, fleet.now, fleet.actions)));
  EXPECT_TRUE(absl::IsInvalidArgument(fleet.core->set_bandwidth(Role::kWorker, 0, -1, fleet.now, fleet.actions)));
}

TEST_F(ChangesTest, AMissingAcknowledgementStopsTheChangeAndNotTheJob) {
  fleet.add(5);
  fleet.connect(5);
  for (uint32_t seat = 0; seat < 6; ++seat) fleet.deliver_to(seat);
  for (uint32_t seat : {0, 2, 3, 4, 5}) fleet.deliver_from(seat);
  for (int i = 0; i < 25; ++i) {
    fleet.now += absl::Milliseconds(100);
    for (const auto& member : fleet.members) fleet.core->on_heartbeat(member.stream, fleet.now);
    fleet.core->on_tick(fleet.now, fleet.actions);
    fleet.collect();
  }
  EXPECT_EQ(fleet.core->planning().changes().withdrawn, 1u);
  EXPECT_EQ(fleet.core->plan().epoch, 2u);
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.settle();
  EXPECT_EQ(fleet.epoch(0), 2u) << "a late acknowledgement changes nothing";
  pass_without(absl::Seconds(6), {});
  EXPECT_THAT(owners(fleet), ElementsAre(3, 4, 5)) << "the change is proposed again";
}

TEST_F(ChangesTest, TensorsOfAWithdrawnPlanAreInTheNextPlan) {
  fleet.declare_all("b");
  for (uint32_t seat = 0; seat < 3; ++seat) fleet.deliver_from(seat);
  fleet.fault(0, 4);
  fleet.settle();
  EXPECT_TRUE(fleet.has_tensor(0, "b"));
  EXPECT_THAT(owners(fleet), ElementsAre(0, 1, 2, 3));
}

TEST_F(ChangesTest, ALostWorkerEndsTheJob) {
  fleet.fault(0, 1);
  EXPECT_THAT(fleet.outcome(), AllOf(HasSubstr("worker 1"), HasSubstr("out of reach")));
}

TEST_F(ChangesTest, NoPartitionMovesAfterAWorkerHasLeft) {
  fleet.leave(0);
  fleet.settle();
  const uint32_t epoch = fleet.epoch(1);
  fleet.fault(1, 4);
  fleet.settle();
  EXPECT_EQ(fleet.epoch(1), epoch);
  fleet.leave(1);
  fleet.leave(2);
  fleet.settle();
  EXPECT_EQ(fleet.outcome(), "well");
}

TEST_F(ChangesTest, AfterARestartOfTheCoordinatorMissingSummersAreLeftOut) {
  fleet.restart();
  for (const uint32_t seat : {0, 1, 2, 3}) fleet.connect(seat);
  fleet.settle();
  EXPECT_EQ(fleet.core->phase(), Phase::kReattaching);
  pass_without(absl::Seconds(7), {4});
  EXPECT_EQ(fleet.core->phase(), Phase::kRunning);
  EXPECT_THAT(owners(fleet), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(fleet.outcome(), "none");
}

TEST(NewSummer, APlanIsProposedAgainToASummerThatHadToCatchUp) {
  Fleet fleet(small_partitions(2, 0));
  fleet.start();
  fleet.add(2);
  fleet.connect(2);
  while (fleet.deliver_to(2) || fleet.deliver_from(2)) {
  }
  ASSERT_EQ(fleet.members[2].prepared->epoch, 2u);
  fleet.cut(2);
  fleet.connect(2);
  // The plan in force arrives, but the proposed plan does not.
  while (fleet.epoch(2) == 0) ASSERT_TRUE(fleet.deliver_to(2));
  fleet.cut(2);
  for (uint32_t seat = 0; seat < 2; ++seat) {
    while (fleet.deliver_to(seat) || fleet.deliver_from(seat)) {
    }
  }
  EXPECT_EQ(fleet.core->plan().epoch, 1u) << "a plan is committed only if all its members have it";
  // The summer follows a plan of which it is not a member, so it is rejected and then joins as a new member. The plan
  // that was proposed with it is withdrawn at once.
  fleet.connect(2);
  EXPECT_EQ(fleet.core->planning().agreement().proposed_epoch(), 0u);
  fleet.settle();
  EXPECT_TRUE(absl::IsAborted(fleet.members[2].rejection));
  fleet.connect(2);
  fleet.settle();
  EXPECT_EQ(fleet.core->planning().changes().withdrawn, 0u);
  EXPECT_TRUE(fleet.core->plan().members.back().is_here() && fleet.core->plan().members.size() == 3);
}

TEST(BeforeTheFirstPlan, ALostSummerIsLeftOut) {
  Fleet fleet(small_partitions(2, 2));
  fleet.connect_all();
  for (uint32_t seat = 0; seat < 3; ++seat) {
    while (fleet.deliver_to(seat) || fleet.deliver_from(seat)) {
    }
  }
  ASSERT_EQ(fleet.core->plan().epoch, 0u) << "one member has not acknowledged";
  fleet.cut(3);
  fleet.pass(absl::Seconds(1.5));
  fleet.settle();
  fleet.declare_all("a");
  fleet.settle();
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_THAT(owners(fleet), ElementsAre(0, 1, 2));
  EXPECT_EQ(fleet.core->planning().changes().lost, 1u);
}

TEST(BeforeTheFirstPlan, ARestartedSummerJoinsAfterThePlan) {
  Fleet fleet(small_partitions(2, 1));
  fleet.connect_all();
  fleet.cut(2);
  fleet.members[2].session.clear();
  fleet.members[2].prepared = nullptr;
  fleet.members[2].identity.address = "10.0.1.2:7000";
  fleet.connect(2);
  fleet.settle();
  fleet.pass(absl::Seconds(1));
  fleet.declare_all("a");
  fleet.settle();
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_THAT(owners(fleet), ElementsAre(0, 1, 2));
  EXPECT_EQ(fleet.members[0].committed->members[2].address, "10.0.1.2:7000");
}

TEST(BeforeTheFirstPlan, ASummerThatRefusesThePlanIsLeftOut) {
  Fleet fleet(small_partitions(2, 1));
  fleet.connect_all();
  fleet.core->on_refused(fleet.members[2].stream, 1, absl::ResourceExhaustedError("no memory"), fleet.now,
                         fleet.actions);
  fleet.collect();
  fleet.settle();
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_GE(fleet.epoch(0), 2u);
  EXPECT_FALSE(fleet.members[0].committed->members.size() > 2 && fleet.members[0].committed->members[2].is_here());
}

TEST(BeforeTheFirstPlan, ASummerThatLeavesWhileThePlanIsProposedIsLeftOut) {
  Fleet fleet(small_partitions(2, 1));
  fleet.connect_all();
  for (uint32_t seat = 0; seat < 2; ++seat) {
    while (fleet.deliver_to(seat) || fleet.deliver_from(seat)) {
    }
  }
  fleet.leave(2);
  fleet.deliver_from(2);
  fleet.settle();
  EXPECT_GE(fleet.epoch(0), 2u);
  fleet.pass(fleet.options_.deadline + absl::Seconds(1));
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_EQ(fleet.core->plan().summers(), 0u);
}

TEST(BeforeTheFirstPlan, ASummerThatLeavesWhileMembersAreMissingIsLeftOut) {
  Fleet fleet(small_partitions(2, 1));
  fleet.connect(0);
  fleet.connect(2);
  fleet.cut(2);
  fleet.pass(absl::Seconds(2));
  fleet.connect(1);
  fleet.settle();
  EXPECT_EQ(fleet.outcome(), "none");
  EXPECT_EQ(fleet.core->plan().epoch, 1u);
  fleet.connect(2);
  fleet.settle();
  fleet.pass(absl::Seconds(1));
  fleet.settle();
  EXPECT_TRUE(fleet.members[0].committed->members.back().is_here()) << "the summer joins when it returns";
  EXPECT_EQ(fleet.members[0].committed->members.size(), 3u);
}

}  // namespace
}  // namespace gleaner::coordinator
