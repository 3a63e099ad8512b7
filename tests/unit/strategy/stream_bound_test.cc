// Tests that the bound of a plan is that of the strategies that sum its tensors.
#include "common/strategy/stream_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/model.h"
#include "common/plan/partitioner.h"
#include "common/topology/subset.h"

namespace gleaner::strategy {
namespace {

constexpr double kMemberBits = 8e9;
constexpr double kRingSeconds = 2.0 * 3 / 4 * 8 / kMemberBits;  // seconds per byte, for 4 workers

// 4 workers, 2 CPU summers, schedule 0 is a ring.
plan::Plan plan_of(const std::vector<plan::Tensor>& tensors) {
  plan::Plan plan =
      *plan::make_plan({std::vector<double>(4, kMemberBits), std::vector<double>(2, kMemberBits)}, {}, {});
  plan.schedules = {{.algorithm = "ring"}};
  plan.tensors = tensors;
  return plan;
}

double by_owners(uint32_t summers) {
  return plan::bound_seconds({std::vector<double>(4, kMemberBits), std::vector<double>(summers, kMemberBits)}, 1);
}

TEST(StreamBound, IsThatOfOwnersWithoutSchedules) {
  for (const auto& plan : {plan_of({}), plan_of({{.name = "a", .elements = 100}})}) {
    const auto bound = stream_bound(plan);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_DOUBLE_EQ(bound->seconds_per_byte, by_owners(2));
    EXPECT_DOUBLE_EQ(bound->seconds_per_byte_without_summers, by_owners(0));
  }
}

TEST(StreamBound, IsThatOfTheSchedule) {
  const auto bound = stream_bound(plan_of({{.name = "a", .elements = 100, .schedule = 0}}));
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_GT(kRingSeconds, by_owners(2) * 1.1);
  EXPECT_NEAR(bound->seconds_per_byte, kRingSeconds, kRingSeconds * 1e-9);
  EXPECT_NEAR(bound->seconds_per_byte_without_summers, kRingSeconds, kRingSeconds * 1e-9);
}

TEST(StreamBound, IsAMeanByBytes) {
  const auto bound =
      stream_bound(plan_of({{.name = "a", .elements = 300, .schedule = 0}, {.name = "b", .elements = 100}}));
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_NEAR(bound->seconds_per_byte, (3 * kRingSeconds + by_owners(2)) / 4, kRingSeconds * 1e-9);
  EXPECT_NEAR(bound->seconds_per_byte_without_summers, (3 * kRingSeconds + by_owners(0)) / 4, kRingSeconds * 1e-9);
}

// Partial sums of fp16 travel as fp32, and complete ones as fp16.
TEST(StreamBound, CountsPartialSums) {
  plan::Plan plan = plan_of({{.name = "a", .elements = 100, .type = DataType::kFloat16, .schedule = 0}});
  for (const uint32_t local_ranks : {1u, 2u}) {
    plan.local_ranks = local_ranks;
    const auto bound = stream_bound(plan);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_NEAR(bound->seconds_per_byte, 1.5 * kRingSeconds, kRingSeconds * 1e-9);
  }
}

// A ring sends as many bytes of partial sums as of complete ones.
TEST(StreamBound, CountsPartialSumsOfBlocks) {
  plan::Tensor tensor{.name = "a", .elements = 100, .type = kInt8Block, .schedule = 0};
  tensor.memory = {.elements = 100 * kBlockValues};
  const double wider = static_cast<double>(size_of(kFloat32Block)) / static_cast<double>(size_of(kInt8Block));
  EXPECT_NEAR(stream_bound(plan_of({tensor}))->seconds_per_byte, (wider + 1) / 2 * kRingSeconds, kRingSeconds * 1e-9);
}

TEST(StreamBound, CountsGatheredContributions) {
  plan::Plan plan = plan_of({{.name = "a", .elements = 100, .type = DataType::kFloat16, .schedule = 0}});
  plan.schedules = {{.algorithm = "gather"}};
  for (const uint32_t local_ranks : {1u, 2u}) {
    plan.local_ranks = local_ranks;
    EXPECT_NEAR(stream_bound(plan)->seconds_per_byte, local_ranks * 3 * 8 / kMemberBits, 1e-18);
  }
  plan.tensors[0].memory = plan::Memory{.elements = 100};
  EXPECT_NEAR(stream_bound(plan)->seconds_per_byte, 3 * 8 / kMemberBits, 1e-18) << "compressed contributions are fp16";
  plan.tensors[0].type = kInt8Block;
  plan.tensors[0].memory = plan::Memory{.elements = 100 * kBlockValues, .contribution = kSignBlock};
  const double signs = static_cast<double>(size_of(kSignBlock)) / static_cast<double>(size_of(kInt8Block));
  EXPECT_NEAR(stream_bound(plan)->seconds_per_byte, signs * 3 * 8 / kMemberBits, 1e-18);
}

// Two racks, "left" with the hosts 0 and 1, and "right".
JobNetwork two_racks(double uplink_bits) {
  return {.topology = *topology::Topology::make({{"a", {}}, {"b", {}}, {"c", {}}, {"d", {}}}, {{"left"}, {"right"}},
                                                {{0, 4, kMemberBits, kMemberBits, 0},
                                                 {1, 4, kMemberBits, kMemberBits, 0},
                                                 {2, 5, kMemberBits, kMemberBits, 0},
                                                 {3, 5, kMemberBits, kMemberBits, 0},
                                                 {4, 5, uplink_bits, uplink_bits, 0}})};
}

// A ring in the order of the racks crosses the uplink once each way.
TEST(StreamBound, CountsLinksBetweenSwitches) {
  const JobNetwork network = two_racks(kMemberBits / 4);
  plan::Plan plan = *plan::make_plan({std::vector<double>(4, kMemberBits), {}}, {}, {});
  plan.schedules = {{.algorithm = "ring"}};
  plan.tensors = {{.name = "a", .elements = 100, .schedule = 0}};
  const auto bound = stream_bound(plan, &network);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_NEAR(bound->seconds_per_byte, 4 * kRingSeconds, kRingSeconds * 1e-9);
}

// Each side of the uplink has half of the workers, so the uplink carries two vectors each way, whoever owns them.
TEST(StreamBound, CountsLinksBetweenSwitchesForOwners) {
  JobNetwork network = two_racks(kMemberBits / 4);
  network.summers_at = {1};
  for (const size_t summers : {0, 1}) {
    const plan::Plan plan =
        *plan::make_plan({std::vector<double>(4, kMemberBits), std::vector<double>(summers, kMemberBits)}, {}, {});
    const auto bound = stream_bound(plan, &network);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_NEAR(bound->seconds_per_byte, 2 * 8 / (kMemberBits / 4), 1e-18);
    EXPECT_NEAR(bound->seconds_per_byte_without_summers, 2 * 8 / (kMemberBits / 4), 1e-18);
  }
}

TEST(StreamBound, SummersCountWhereTheyAre) {
  JobNetwork network = two_racks(kMemberBits * 3 / 4);
  network.topology = *topology::subset(network.topology, std::vector<uint32_t>{0, 1, 2});
  const plan::Plan plan =
      *plan::make_plan({std::vector<double>(3, kMemberBits), std::vector<double>(1, 3 * kMemberBits)}, {}, {});
  network.summers_at = {0, 1};
  const std::vector<uint32_t> left = {0}, right = {1};
  // A summer on the left that owns everything gets the one vector of the right, and sends it one back.
  EXPECT_NEAR(stream_bound(plan, &network, left)->seconds_per_byte, 8 / (kMemberBits * 3 / 4), 1e-18);
  EXPECT_GT(stream_bound(plan, &network, right)->seconds_per_byte, 1.05 * 8 / (kMemberBits * 3 / 4));
}

}  // namespace
}  // namespace gleaner::strategy
