#include "common/member/unplanned_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::member {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

plan::Tensor tensor(const std::string& name) { return {name, 10, DataType::kFloat32, 0}; }
plan::Plan plan_of(const std::vector<plan::Tensor>& tensors) {
  plan::Plan plan;
  plan.tensors = tensors;
  return plan;
}
std::vector<std::string> names(const std::optional<control::Declare>& declaration) {
  std::vector<std::string> names;
  if (!declaration.has_value()) return names;
  for (const plan::Tensor& each : declaration->tensors) names.push_back(each.name);
  return names;
}

class UnplannedTensorsTest : public testing::Test {
 protected:
  UnplannedTensors unplanned_{"10.0.0.1:7000", absl::Minutes(10)};
  const plan::Operation of_a_{"a", ReduceOp::kSum}, of_b_{"b", ReduceOp::kAverage};
};

TEST_F(UnplannedTensorsTest, HoldsTensorsUntilAPlanHasThem) {
  unplanned_.add({tensor("a"), tensor("b")}, {}, {});
  unplanned_.add({tensor("a"), tensor("c")}, {}, {});
  EXPECT_THAT(names(unplanned_.declare_all()), ElementsAre("a", "b", "c"));
  unplanned_.on_commit(plan_of({tensor("a"), tensor("c"), tensor("of another rank")}));
  EXPECT_THAT(names(unplanned_.declare_all()), ElementsAre("b"));
  unplanned_.on_commit(plan_of({tensor("b")}));
  EXPECT_EQ(unplanned_.declare_all(), std::nullopt);
  unplanned_.add({tensor("a")}, {}, {});
  EXPECT_EQ(unplanned_.declare_all(), std::nullopt) << "a plan has the tensor";
}

TEST_F(UnplannedTensorsTest, DeclaresEachOperationOnceUntilItDeclaresAll) {
  unplanned_.add({tensor("a"), tensor("b")}, {of_a_}, {});
  EXPECT_THAT(unplanned_.declare({tensor("a"), tensor("b")}).operations, ElementsAre(of_a_));
  unplanned_.add({}, {of_b_, {"never declared", ReduceOp::kSum}}, {});
  const std::optional<control::Declare> later = unplanned_.declare_operations();
  ASSERT_TRUE(later.has_value());
  EXPECT_THAT(later->tensors, IsEmpty());
  EXPECT_THAT(later->operations, ElementsAre(of_b_));
  EXPECT_EQ(unplanned_.declare_operations(), std::nullopt);
  EXPECT_THAT(unplanned_.declare_all()->operations, ElementsAre(of_a_, of_b_));
}

TEST_F(UnplannedTensorsTest, DropsOperationsOfPlannedTensors) {
  unplanned_.add({tensor("a"), tensor("b")}, {of_a_, of_b_}, {});
  unplanned_.on_commit(plan_of({tensor("a")}));
  EXPECT_THAT(unplanned_.declare_operations()->operations, ElementsAre(of_b_));
  EXPECT_THAT(unplanned_.declare_all()->operations, ElementsAre(of_b_));
  unplanned_.add({}, {of_a_}, {});
  EXPECT_EQ(unplanned_.declare_operations(), std::nullopt);
}

TEST_F(UnplannedTensorsTest, ATensorWaitsForALostCoordinatorUntilThePlanTimeout) {
  const absl::Status refused = absl::UnavailableError("connection refused");
  unplanned_.add({tensor("a")}, {}, absl::Minutes(1));
  EXPECT_EQ(unplanned_.check_wait(std::nullopt, refused, absl::Hours(1)), absl::OkStatus()) << "nothing is lost";
  EXPECT_EQ(unplanned_.check_wait(absl::Minutes(2), refused, absl::Minutes(12)), absl::OkStatus());
  EXPECT_THAT(unplanned_.check_wait(absl::Minutes(2), refused, absl::Minutes(13)).message(),
              AllOf(HasSubstr("tensor 'a' has waited for a plan for 10m"), HasSubstr("10.0.0.1:7000"),
                    HasSubstr("connection refused")));
  unplanned_.on_commit(plan_of({tensor("a")}));
  unplanned_.add({tensor("b")}, {}, absl::Minutes(5));
  EXPECT_EQ(unplanned_.check_wait(absl::Minutes(2), refused, absl::Minutes(15)), absl::OkStatus()) << "a new tensor";
}

TEST_F(UnplannedTensorsTest, WithoutACoordinatorNoTensorCanBePlanned) {
  EXPECT_EQ(unplanned_.check_without_coordinator(absl::OkStatus()), absl::OkStatus());
  unplanned_.add({tensor("a")}, {}, {});
  EXPECT_EQ(unplanned_.check_without_coordinator(absl::UnavailableError("broken")).message(),
            "the coordinator at 10.0.0.1:7000 is lost and can't be replaced, and no plan has tensor 'a': broken");
}

}  // namespace
}  // namespace gleaner::member
