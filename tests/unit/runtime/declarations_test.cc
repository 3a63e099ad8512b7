#include "comm-lib/runtime/declarations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::runtime {
namespace {

using ::testing::HasSubstr;

const plan::Tensor kWeights{"fc.weight", 10, DataType::kFloat32, 3};
const plan::Tensor kBias{"fc.bias", 2, DataType::kFloat32, 3};

TEST(Declarations, TheSameNameAlikeIsTheSameTensor) {
  Declarations declarations;
  EXPECT_EQ(declarations.declare(kWeights).value(), 0u);
  EXPECT_EQ(declarations.declare(kBias).value(), 1u);
  EXPECT_EQ(declarations.declare(kWeights).value(), 0u);
  EXPECT_EQ(declarations.take_untold().size(), 2u);
  EXPECT_TRUE(declarations.take_untold().empty());
}

TEST(Declarations, TheSameNameOtherwiseIsAnErrorThatShowsBoth) {
  Declarations declarations;
  ASSERT_TRUE(declarations.declare(kWeights).ok());
  plan::Tensor other = kWeights;
  other.elements = 11;
  const absl::Status status = declarations.declare(other).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'fc.weight' is declared twice: first 10 elements of fp32"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("now 11 elements"));
}

TEST(Declarations, RefusesWhatNoTensorCanBe) {
  Declarations declarations;
  EXPECT_TRUE(absl::IsInvalidArgument(declarations.declare({"", 1, DataType::kFloat32, 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(declarations.declare({"x", 1, static_cast<DataType>(9), 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(declarations.declare({"x", ~uint64_t{0}, DataType::kFloat64, 0}).status()));
  EXPECT_TRUE(declarations.take_untold().empty());
}

TEST(Declarations, OnePushPullOfATensorAtATime) {
  Declarations declarations;
  const uint32_t id = declarations.declare(kBias).value();
  EXPECT_EQ(declarations.begin(id).value(), kBias);
  EXPECT_TRUE(absl::IsFailedPrecondition(declarations.begin(id).status()));
  declarations.end(id);
  EXPECT_TRUE(declarations.begin(id).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(declarations.begin(7).status()));
}

}  // namespace
}  // namespace gleaner::runtime
