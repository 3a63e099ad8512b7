#include "comm-lib/runtime/declarations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const plan::Tensor kWeights{"fc.weight", 10, DataType::kFloat32, 3};
const plan::Tensor kBias{"fc.bias", 2, DataType::kFloat32, 3};

TEST(Declarations, ARepeatedDeclarationReturnsTheSameTensor) {
  Declarations declarations;
  EXPECT_EQ(declarations.declare(kWeights).value(), 0u);
  EXPECT_EQ(declarations.declare(kBias).value(), 1u);
  EXPECT_EQ(declarations.declare(kWeights).value(), 0u);
  EXPECT_EQ(declarations.take_unsent(0, ReduceOp::kSum).tensors.size(), 2u);
  EXPECT_TRUE(declarations.take_unsent(0, ReduceOp::kSum).tensors.empty());
}

TEST(Declarations, KnowsWhetherATensorAccumulates) {
  Declarations declarations;
  ASSERT_TRUE(declarations.declare({"gradient", 1, DataType::kFloat32}).ok());
  EXPECT_FALSE(declarations.any_accumulates());
  plan::Tensor accumulated{"sum", 1, DataType::kFloat32};
  accumulated.accumulates = true;
  ASSERT_TRUE(declarations.declare(accumulated).ok());
  EXPECT_TRUE(declarations.any_accumulates());
}

TEST(Declarations, TheFirstOperationOfATensorIsSentOnce) {
  Declarations declarations;
  ASSERT_TRUE(declarations.declare(kWeights).ok());
  ASSERT_TRUE(declarations.declare(kBias).ok());
  const plan::Operation first{"fc.bias", ReduceOp::kAverage};
  EXPECT_THAT(declarations.take_unsent(1, ReduceOp::kAverage).operations, ElementsAre(first));
  EXPECT_THAT(declarations.take_unsent(1, ReduceOp::kSum).operations, IsEmpty());
  const plan::Operation second{"fc.weight", ReduceOp::kSum};
  EXPECT_THAT(declarations.take_unsent(0, ReduceOp::kSum).operations, ElementsAre(second));
}

TEST(Declarations, ATooLongNameIsAnErrorOfTheCall) {
  Declarations declarations;
  const std::string longest(plan::kMaxTensorNameBytes, 'n');
  EXPECT_TRUE(declarations.declare({longest, 1, DataType::kFloat32, 0}).ok());
  const absl::Status status = declarations.declare({longest + "n", 1, DataType::kFloat32, 0}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("4097 bytes; expected at most 4096"));
}

TEST(Declarations, ANameIsUtf8WithoutControlCharacters) {
  Declarations declarations;
  EXPECT_TRUE(declarations.declare({"caf\xc3\xa9", 1, DataType::kFloat32, 0}).ok());
  for (const char* name : {"caf\xe9", "two\nlines", "\xc2\x85", "cut\xe6\xa8"}) {
    const absl::Status status = declarations.declare({name, 1, DataType::kFloat32, 0}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("the tensor's name '"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected at most 4096 bytes of UTF-8 without control"));
  }
}

TEST(Declarations, ADifferentDeclarationIsAnErrorThatShowsBoth) {
  Declarations declarations;
  ASSERT_TRUE(declarations.declare(kWeights).ok());
  plan::Tensor other = kWeights;
  other.elements = 11;
  const absl::Status status = declarations.declare(other).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'fc.weight' is declared twice: first 10 elements of fp32"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("now 11 elements"));
}

TEST(Declarations, RefusesInvalidTensors) {
  Declarations declarations;
  EXPECT_TRUE(absl::IsInvalidArgument(declarations.declare({"", 1, DataType::kFloat32, 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(declarations.declare({"x", 1, static_cast<DataType>(9), 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(declarations.declare({"x", ~uint64_t{0}, DataType::kFloat64, 0}).status()));
  EXPECT_TRUE(declarations.declare(kBias).ok());
  EXPECT_THAT(declarations.take_unsent(0, ReduceOp::kSum).tensors, ElementsAre(kBias));
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
