#include "common/strategy/step.h"

#include <gtest/gtest.h>

#include "common/plan/schedule_name.h"
#include "common/topology/builders.h"

namespace gleaner::strategy {
namespace {

constexpr double kMiB = 1 << 20;

// Summers, and a schedule that is twice as fast.
std::vector<Candidate> two_candidates() {
  return {{{}, {.alone_seconds_per_byte = 2}, {.alone_seconds_per_byte = 2}, {}},
          {collective::Spec{"gather"}, {.alone_seconds_per_byte = 1}, {.alone_seconds_per_byte = 1}, {}}};
}

TEST(Step, PartsAddUp) {
  const std::vector<Candidate> all = {{collective::Spec{"a"}, {1, 4, 3}}, {collective::Spec{"b"}, {1, 2, 1}}};
  const std::vector<TensorGroup> groups = {{10, 5, 2, 0}, {4, 5, 1, 1}};
  EXPECT_EQ(step_parts(all, groups, in_force(groups)), (std::vector<double>{2 * 10 * 3 + 1 + (4 - 3) * 5, 4}));
  EXPECT_EQ(step_seconds(all, groups, std::vector<size_t>{1, 1}), 2 * 10 + 4 + 1 + (2 - 1) * 5);
}

TEST(Step, TensorsWithoutElementsTakeNoTime) {
  const auto network = make_network(*topology::star(4, {.overhead_seconds = 5e-6}));
  const std::vector<Candidate> all = *candidates(network, 3, 1);
  std::vector<TensorGroup> groups = {{1e6, 1e5, 1, 0}};
  const double seconds = step_seconds(all, groups, in_force(groups));
  for (size_t strategy = 0; strategy < all.size(); ++strategy) groups.push_back({0, 1e5, 1, strategy});
  EXPECT_EQ(step_seconds(all, groups, in_force(groups)), seconds);
}

TEST(Step, OneTensorTakesAsLongAsAlone) {
  const std::vector<Candidate> all = {{collective::Spec{"a"}, {1, 4, 3}}};
  const std::vector<TensorGroup> groups = {{10, 5, 1, 0}};
  EXPECT_EQ(step_seconds(all, groups, in_force(groups)), all[0].model.seconds(10, 5));
}

TEST(Step, NarrowTypesHaveModelsOfTheirOwn) {
  const std::vector<Candidate> all = {{collective::Spec{"a"}, {1, 4, 3}, {1, 8, 6}, {1, 9, 7}}};
  std::vector<TensorGroup> groups = {{10, 5, 2, 0}};
  groups[0].types = {DataType::kBFloat16, DataType::kFloat32, DataType::kBFloat16};
  EXPECT_EQ(step_seconds(all, groups, in_force(groups)), 2 * 10 * 6 + 1 + (8 - 6) * 5);
  groups[0].types.contribution = DataType::kFloat32;
  EXPECT_EQ(step_seconds(all, groups, in_force(groups)), 2 * 10 * 7 + 1 + (9 - 7) * 5);
  std::vector<Candidate> two = two_candidates();
  two[1].narrow_model.alone_seconds_per_byte = 3;
  groups[0].types.contribution = DataType::kBFloat16;
  EXPECT_EQ(best_strategies(two, groups)[0], 0u);
  groups[0].types = {DataType::kInt32, DataType::kInt32, DataType::kInt32};
  EXPECT_EQ(best_strategies(two, groups)[0], 1u);
}

TEST(Step, MessagesMustFitThePartitionsInForce) {
  std::vector<Candidate> all = two_candidates();
  const auto chosen = [&](double partition_bytes, double message_bytes) {
    all[1].model.message_bytes = message_bytes;
    return best_strategies(all, std::vector<TensorGroup>{{partition_bytes, partition_bytes, 1}})[0];
  };
  EXPECT_EQ(chosen(kMiB, 4), 1u);
  EXPECT_EQ(chosen(kMiB, 5), 0u) << "a message has at most 4 MiB";
  EXPECT_EQ(chosen(0.5 * kMiB, 5), 1u);
}

}  // namespace
}  // namespace gleaner::strategy
