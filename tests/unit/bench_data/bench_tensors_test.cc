#include "cli/bench/tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "cli/bench/data.h"

namespace gleaner::cli {
namespace {

using ::testing::HasSubstr;

BenchTensors three_tensors() {
  return *BenchTensors::make({{.name = "a", .elements = 3, .type = DataType::kFloat32},
                              {.name = "empty", .elements = 0, .type = DataType::kFloat32},
                              {.name = "b", .elements = 5, .type = DataType::kFloat16}});
}

TEST(BenchTensors, ElementsAreNumberedInOneSequence) {
  BenchTensors tensors = three_tensors();
  EXPECT_EQ(tensors.bytes(), 22);
  tensors.fill_input(7, 3, 5);
  std::vector<std::byte> expected(10);
  BenchData(7, 3, 5).fill(DataType::kFloat16, 3, expected);
  EXPECT_TRUE(std::ranges::equal(tensors.input(2), expected));
  EXPECT_EQ(tensors.input(1).size(), 0);
}

TEST(BenchTensors, OutputsAreHashedWithoutGaps) {
  BenchTensors tensors = three_tensors();
  std::memcpy(tensors.output(0).data(), "hello, world", 12);
  std::memset(tensors.output(2).data(), '!', 10);
  // printf 'hello, world!!!!!!!!!!' | sha256sum
  EXPECT_EQ(*tensors.output_sha256(), "13e1510f8b5f0f7fdfa076e2a210e9f229c6827bb4b49f65bdaac015e2bf51b5");
}

TEST(BenchTensors, AWrongTensorIsNamed) {
  BenchTensors tensors = three_tensors();
  BenchOracle oracle = *BenchOracle::make(7, 2, 1);
  oracle.sum(DataType::kFloat32, 1, 0, tensors.output(0));
  oracle.sum(DataType::kFloat16, 1, 3, tensors.output(2));
  const auto check = [&](size_t tensor, uint64_t first, ConstBytes sum) {
    return oracle.check(tensors.tensor(tensor).type, 1, first, sum);
  };
  EXPECT_TRUE(tensors.check_output(1, check).ok());
  tensors.output(2)[4] ^= std::byte{1};
  const absl::Status status = tensors.check_output(1, check);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("step 1: tensor 'b', element 2: expected 0x"));
}

TEST(BenchTensors, LackOfMemoryIsAnError) {
  const auto bytes = AlignedBytes::make(size_t{1} << 60);
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("1152921504606846976 bytes"));
}

}  // namespace
}  // namespace gleaner::cli
