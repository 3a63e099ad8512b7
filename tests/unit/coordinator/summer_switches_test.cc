// Tests of the switches of summers, of which the coordinator is told while a job runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/partitioner.h"
#include "common/strategy/rank_maps.h"
#include "common/topology/builders.h"
#include "common/topology/subset.h"
#include "tests/unit/coordinator/fleet.h"

namespace gleaner::coordinator {
namespace {

constexpr uint32_t kCore = 0, kRack0 = 1, kRack1 = 2;
constexpr uint32_t kSummer = 4;  // the seat, and the place in the plan, of the first summer

// Three of four workers are in rack 0, whose uplink is least busy if all owners are in that rack.
Options racks_of_three_and_one(strategy::Strategy strategy = strategy::Summers()) {
  Options result = options(4, 0);
  result.bits_per_second = 8e9;
  result.partition_bytes = 128;
  result.reduction.strategy = std::move(strategy);
  const std::vector<uint32_t> hosts = {0, 1, 2, 3};
  strategy::JobNetwork network{.topology = *topology::subset(*topology::racks(2, 3, {8e9, 1e9, 1e-6}), hosts)};
  network.summers_at.emplace();
  result.reduction.network = std::make_shared<const strategy::JobNetwork>(std::move(network));
  return result;
}

class SummerSwitches : public testing::Test {
 protected:
  SummerSwitches() {
    fleet_.start();
    fleet_.declare_all("a");
    fleet_.settle();
  }
  void join(uint32_t index) {
    fleet_.add(kSummer + index);
    fleet_.connect(kSummer + index);
  }
  absl::Status tell(uint32_t index, uint32_t at) {
    absl::Status status = fleet_.core->set_summer_switch(index, at, fleet_.now, fleet_.actions);
    fleet_.collect();
    return status;
  }
  // Returns whether the first summer of the plan in force owns anything.
  bool owns() {
    fleet_.settle();
    return plan::owned_bytes(fleet_.core->plan())[kSummer] > 0;
  }
  Fleet fleet_{racks_of_three_and_one()};
};

TEST_F(SummerSwitches, ShareIsThatOfTheSwitch) {
  join(0);
  EXPECT_FALSE(owns()) << "it is at the core, behind the uplink that binds";
  ASSERT_EQ(tell(0, kRack0), absl::OkStatus());
  EXPECT_TRUE(owns());
  const uint32_t epoch = fleet_.epoch(0);
  ASSERT_EQ(tell(0, kRack0), absl::OkStatus());
  EXPECT_TRUE(owns());
  EXPECT_EQ(fleet_.epoch(0), epoch) << "nothing has changed";
  ASSERT_EQ(tell(0, kRack1), absl::OkStatus());
  EXPECT_FALSE(owns());
}

TEST_F(SummerSwitches, SwitchMayBeKnownBeforeTheSummerJoins) {
  ASSERT_EQ(tell(0, kRack0), absl::OkStatus());
  EXPECT_EQ(fleet_.core->planning().agreement().proposed_epoch(), 0u);
  join(0);
  EXPECT_TRUE(owns());
  EXPECT_EQ(fleet_.epoch(0), 3u);
}

TEST_F(SummerSwitches, ProposedPlanIsFollowedByAnotherOne) {
  join(0);
  ASSERT_EQ(fleet_.core->planning().agreement().proposed_epoch(), 3u);
  ASSERT_EQ(tell(0, kRack0), absl::OkStatus());
  EXPECT_TRUE(owns());
  EXPECT_EQ(fleet_.epoch(0), 4u);
}

TEST_F(SummerSwitches, WithdrawnPlanIsProposedAgain) {
  join(0);
  EXPECT_FALSE(owns());
  ASSERT_EQ(tell(0, kRack0), absl::OkStatus());
  ASSERT_EQ(fleet_.core->planning().agreement().proposed_epoch(), 4u);
  fleet_.core->on_refused(fleet_.members[0].stream, 4, absl::ResourceExhaustedError("no memory"), fleet_.now,
                          fleet_.actions);
  fleet_.collect();
  EXPECT_FALSE(owns());
  fleet_.pass(absl::Seconds(6));
  EXPECT_TRUE(owns());
}

TEST_F(SummerSwitches, SuccessorAtAPlaceHasItsOwnSwitch) {
  ASSERT_EQ(tell(0, kRack0), absl::OkStatus());
  join(0);
  EXPECT_TRUE(owns());
  fleet_.fault(0, kSummer);
  fleet_.settle();
  fleet_.add(kSummer + 7);
  fleet_.connect(kSummer + 1);
  fleet_.settle();
  ASSERT_TRUE(fleet_.core->plan().members[kSummer].is_here());
  EXPECT_FALSE(owns()) << "summer 7 is not known to be elsewhere than at the core";
  ASSERT_EQ(tell(7, kRack0), absl::OkStatus());
  EXPECT_TRUE(owns());
}

TEST_F(SummerSwitches, AutoModelsTheNetworkAnew) {
  Fleet fleet(racks_of_three_and_one(strategy::Auto()));
  fleet.start();
  fleet.add(kSummer);
  fleet.connect(kSummer);
  fleet.settle();
  ASSERT_EQ(fleet.core->set_summer_switch(0, kRack0, fleet.now, fleet.actions), absl::OkStatus());
  fleet.collect();
  fleet.declare_all("a");
  fleet.settle();
  EXPECT_TRUE(fleet.has_tensor(0, "a"));
}

TEST_F(SummerSwitches, UnknownSwitchIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(tell(0, 3)));
  Fleet plain(options(2, 0));
  EXPECT_TRUE(absl::IsFailedPrecondition(plain.core->set_summer_switch(0, kCore, plain.now, plain.actions)));
}

}  // namespace
}  // namespace gleaner::coordinator
