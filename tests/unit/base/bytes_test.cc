#include "common/base/bytes.h"

#include <gtest/gtest.h>

namespace gleaner {
namespace {

constexpr DataType kAll[] = {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16, DataType::kBFloat16,
                             DataType::kInt32};

TEST(DataTypes, NamesRoundTrip) {
  for (DataType type : kAll) {
    EXPECT_TRUE(is_valid(type));
    EXPECT_EQ(parse_data_type(name_of(type)), type);
  }
  EXPECT_EQ(name_of(DataType::kBFloat16), "bf16");
  EXPECT_EQ(parse_data_type("float32"), std::nullopt);
  EXPECT_EQ(parse_data_type(""), std::nullopt);
}

// These numbers are sent to peers, so changing one of them breaks compatibility.
TEST(DataTypes, ValuesAndSizesAreFixed) {
  const int values[] = {1, 2, 3, 4, 5};
  const size_t sizes[] = {4, 8, 2, 2, 4};
  for (size_t i = 0; i < std::size(kAll); ++i) {
    EXPECT_EQ(static_cast<int>(kAll[i]), values[i]);
    EXPECT_EQ(size_of(kAll[i]), sizes[i]);
  }
}

// A block of fp32 has 4096 bytes.
TEST(DataTypes, BlockTypesHaveFixedValuesAndSizes) {
  const DataType types[] = {kFloat32Block, kInt8Block, kInt4Block,  kSignBlock,
                            top_k(1),      top_k(128), random_k(1), random_k(128)};
  const int values[] = {6, 7, 8, 9, 16, 23, 24, 31};
  const size_t sizes[] = {4096, 1028, 516, 132, 6, 768, 4, 512};
  for (size_t i = 0; i < std::size(types); ++i) {
    EXPECT_EQ(static_cast<int>(types[i]), values[i]);
    EXPECT_EQ(size_of(types[i]), sizes[i]);
    EXPECT_TRUE(is_block(types[i]) && !is_plain(types[i]));
  }
  EXPECT_EQ(name_of(top_k(8)), "top-8");
  EXPECT_EQ(parse_data_type("int8"), std::nullopt) << "ranks hold no tensors in blocks";
}

TEST(DataTypes, OtherNamesAndValuesAreInvalid) {
  for (int value : {0, 10, 15, 32, 255}) {
    EXPECT_FALSE(is_valid(static_cast<DataType>(value)));
    EXPECT_EQ(size_of(static_cast<DataType>(value)), 0u);
    EXPECT_EQ(name_of(static_cast<DataType>(value)), "invalid");
  }
  EXPECT_TRUE(is_valid(ReduceOp::kSum));
  EXPECT_TRUE(is_valid(ReduceOp::kAverage));
  EXPECT_TRUE(is_valid(ReduceOp::kAccumulate));
  EXPECT_FALSE(is_valid(static_cast<ReduceOp>(0)));
  EXPECT_FALSE(is_valid(static_cast<ReduceOp>(4)));
}

}  // namespace
}  // namespace gleaner
