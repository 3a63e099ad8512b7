#include "comm-lib/device/kernels/sum_launch.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/unit/device/gpus.h"

namespace gleaner::device {
namespace {

using absl::StatusCode;

absl::StatusOr<SumArguments> arguments_of(DataType from, DataType to, const std::vector<uint64_t>& sources,
                                          uint64_t result, size_t elements, uint32_t divisor = 1) {
  std::vector<Address> addresses;
  for (const uint64_t source : sources) addresses.push_back(Address{source});
  return sum_arguments(kSumKernels[*find_sum_kernel(from, to)], addresses, Address{result}, elements, divisor);
}

constexpr DataType kFloat = DataType::kFloat32;
constexpr DataType kHalf = DataType::kFloat16;

TEST(SumLaunch, AlignedElementsAreVectors) {
  const SumArguments arguments = *arguments_of(kFloat, kFloat, {0x1000, 0x2010}, 0x3000, 11, 3);
  EXPECT_EQ(arguments.sources[1], 0x2010u);
  EXPECT_EQ(arguments.result, 0x3000u);
  EXPECT_EQ(arguments.elements, 11u);
  EXPECT_EQ(arguments.count, 2u);
  EXPECT_EQ(arguments.divisor, 3u);
  EXPECT_EQ(arguments.head, 0u);
  EXPECT_EQ(arguments.vectors, 2u);
}

TEST(SumLaunch, VectorsBeginWhereAllAreAligned) {
  const SumArguments arguments = *arguments_of(kHalf, kHalf, {0x1006, 0x2016}, 0x3006, 22);
  EXPECT_EQ(arguments.head, 5u);
  EXPECT_EQ(arguments.vectors, 2u);
}

// The result of 8 halves has 32 bytes, and needs the alignment of a vector.
TEST(SumLaunch, ResultMustBeAlignedToo) {
  EXPECT_EQ(arguments_of(kHalf, kFloat, {0x1000}, 0x3000, 8)->vectors, 1u);
  EXPECT_EQ(arguments_of(kHalf, kFloat, {0x1000}, 0x3008, 8)->vectors, 0u);
  EXPECT_EQ(arguments_of(kFloat, kHalf, {0x1000}, 0x3008, 8)->vectors, 2u);
  EXPECT_EQ(arguments_of(kFloat, kHalf, {0x1000}, 0x3004, 8)->vectors, 0u);
}

TEST(SumLaunch, UnequalSourcesHaveNoVectors) {
  const SumArguments arguments = *arguments_of(kFloat, kFloat, {0x1004, 0x2000}, 0x3004, 100);
  EXPECT_EQ(arguments.head, 0u);
  EXPECT_EQ(arguments.vectors, 0u);
}

TEST(SumLaunch, FewElementsHaveNoVectors) {
  EXPECT_EQ(arguments_of(kFloat, kFloat, {0x1004}, 0x3004, 6)->vectors, 0u);
  EXPECT_EQ(arguments_of(kFloat, kFloat, {0x1004}, 0x3004, 7)->vectors, 1u);
}

TEST(SumLaunch, BlocksAreBounded) {
  EXPECT_EQ(blocks_of({}), 1u);
  EXPECT_EQ(blocks_of({.elements = 257}), 2u);
  EXPECT_EQ(blocks_of({.elements = 1030, .vectors = 257}), 2u);
  EXPECT_EQ(blocks_of({.elements = uint64_t{1} << 40}), 1024u);
}

TEST(SumLaunch, OtherTypesHaveNoKernel) {
  EXPECT_EQ(find_sum_kernel(DataType::kFloat64, kFloat), std::nullopt);
  EXPECT_EQ(find_sum_kernel(kHalf, DataType::kBFloat16), std::nullopt);
}

TEST(SumLaunch, WrongArgumentsAreExplained) {
  const std::vector<uint64_t> many(kMostSources + 1, 0x1000);
  EXPECT_THAT(arguments_of(kFloat, kFloat, {}, 0x1000, 1).status(), IsError(StatusCode::kInvalidArgument, "got 0"));
  EXPECT_THAT(arguments_of(kFloat, kFloat, many, 0x1000, 1).status(),
              IsError(StatusCode::kInvalidArgument, "expected 1 to 64 sources of a sum, got 65"));
  EXPECT_THAT(arguments_of(kHalf, kFloat, {0x1002, 0x1001}, 0x2000, 1).status(),
              IsError(StatusCode::kInvalidArgument, "multiple of 2 bytes; got address 0x1001"));
  EXPECT_THAT(arguments_of(kHalf, kFloat, {0x1002}, 0x2002, 1).status(),
              IsError(StatusCode::kInvalidArgument, "multiple of 4 bytes; got address 0x2002"));
  EXPECT_THAT(arguments_of(DataType::kInt32, DataType::kInt32, {0x1000}, 0x1000, 1, 2).status(),
              IsError(StatusCode::kInvalidArgument, "can't divide a sum of int32 by 2"));
  EXPECT_THAT(arguments_of(kFloat, kFloat, {0x1000}, 0x1000, 1, 0).status(),
              IsError(StatusCode::kInvalidArgument, "by 0"));
}

}  // namespace
}  // namespace gleaner::device
