#include "common/member/unplanned_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::member {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

plan::Tensor tensor(const std::string& name) { return {name, 10, DataType::kFloat32, 0}; }
plan::Plan plan_of(const std::vector<plan::Tensor>& tensors) {
  plan::Plan plan;
  plan.tensors = tensors;
  return plan;
}
std::vector<std::string> names(const UnplannedTensors& unplanned) {
  std::vector<std::string> names;
  for (const plan::Tensor& each : unplanned.tensors()) names.push_back(each.name);
  return names;
}

TEST(UnplannedTensors, HoldsTensorsUntilAPlanHasThem) {
  UnplannedTensors unplanned;
  unplanned.add({tensor("a"), tensor("b")}, {}, absl::Seconds(1));
  unplanned.add({tensor("a"), tensor("c")}, {}, absl::Seconds(2));
  EXPECT_THAT(names(unplanned), ElementsAre("a", "b", "c"));
  EXPECT_EQ(unplanned.since(), absl::Seconds(1));
  unplanned.on_commit(plan_of({tensor("a"), tensor("c"), tensor("of another rank")}));
  EXPECT_THAT(names(unplanned), ElementsAre("b"));
  unplanned.on_commit(plan_of({tensor("b")}));
  EXPECT_TRUE(unplanned.empty());
  unplanned.add({tensor("a")}, {}, absl::Seconds(3));
  EXPECT_TRUE(unplanned.empty()) << "a plan has the tensor";
  unplanned.add({tensor("d")}, {}, absl::Seconds(4));
  EXPECT_EQ(unplanned.since(), absl::Seconds(4));
}

TEST(UnplannedTensors, ReturnsEachOperationOnceAndKeepsAll) {
  UnplannedTensors unplanned;
  const plan::Operation of_a{"a", ReduceOp::kSum}, of_b{"b", ReduceOp::kAverage};
  unplanned.add({tensor("a"), tensor("b")}, {of_a}, {});
  EXPECT_THAT(unplanned.take_unsent_operations(), ElementsAre(of_a));
  unplanned.add({}, {of_b, {"never declared", ReduceOp::kSum}}, {});
  EXPECT_THAT(unplanned.take_unsent_operations(), ElementsAre(of_b));
  EXPECT_THAT(unplanned.take_unsent_operations(), IsEmpty());
  EXPECT_THAT(unplanned.operations(), ElementsAre(of_a, of_b));
}

TEST(UnplannedTensors, DropsOperationsOfPlannedTensors) {
  UnplannedTensors unplanned;
  unplanned.add({tensor("a"), tensor("b")}, {{"a", ReduceOp::kSum}, {"b", ReduceOp::kSum}}, {});
  unplanned.on_commit(plan_of({tensor("a")}));
  EXPECT_THAT(unplanned.operations(), ElementsAre(plan::Operation{"b", ReduceOp::kSum}));
  EXPECT_THAT(unplanned.take_unsent_operations(), ElementsAre(plan::Operation{"b", ReduceOp::kSum}));
  unplanned.add({}, {{"a", ReduceOp::kSum}}, {});
  EXPECT_THAT(unplanned.take_unsent_operations(), IsEmpty());
}

}  // namespace
}  // namespace gleaner::member
