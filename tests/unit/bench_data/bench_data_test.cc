// Compares the data of `gleaner bench` and its sums with constants that numpy and PyTorch computed
// (docs/bench-data.md).
#include "cli/bench/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cli/bench/oracle.h"

namespace gleaner::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Bits>
MutableBytes bytes_of(std::vector<Bits>& values) {
  return std::as_writable_bytes(std::span(values));
}

// Returns elements 0 to 5 of rank 5 at step 3, for seed 7.
template <typename Bits>
std::vector<Bits> first_six(DataType type) {
  std::vector<Bits> bits(6);
  BenchData(7, 3, 5).fill(type, 0, bytes_of(bits));
  return bits;
}

TEST(BenchData, DrawsAsSplitmix64Does) {
  EXPECT_EQ(splitmix64(0), 0xE220A8397B1DCDAF);
  EXPECT_EQ(splitmix64(1), 0x910A2DEC89025CC1);
  EXPECT_EQ(splitmix64(2), 0x975835DE1C9756CE);
}

TEST(BenchData, IsTheSameOnAllRanks) {
  EXPECT_THAT(first_six<uint32_t>(DataType::kFloat32),
              ElementsAre(0xBE59A0F0, 0x3F29C256, 0xBD0D6CC0, 0xBF49D69C, 0x3EDBA2A4, 0xBE008E50));
  EXPECT_THAT(first_six<uint64_t>(DataType::kFloat64),
              ElementsAre(0xBFCB341E00000000, 0x3FE5384AC0000000, 0xBFA1AD9800000000, 0xBFE93AD380000000,
                          0x3FDB745480000000, 0xBFC011CA00000000));
  EXPECT_THAT(first_six<uint16_t>(DataType::kFloat16), ElementsAre(0xB2CD, 0x394E, 0xA86B, 0xBA4F, 0x36DD, 0xB004));
  EXPECT_THAT(first_six<uint16_t>(DataType::kBFloat16), ElementsAre(0xBE5A, 0x3F2A, 0xBD0D, 0xBF4A, 0x3EDC, 0xBE01));
  EXPECT_THAT(first_six<uint32_t>(DataType::kInt32),
              ElementsAre(0x64CBE262, 0xD4E12BC6, 0x7B949A60, 0x1B14B2CA, 0xB6E8A966, 0x6FEE36EB));
}

TEST(BenchData, CountsElementsOverAllTensors) {
  std::vector<uint32_t> from_two(4);
  BenchData(7, 3, 5).fill(DataType::kFloat32, 2, bytes_of(from_two));
  EXPECT_THAT(from_two, ElementsAre(0xBD0D6CC0, 0xBF49D69C, 0x3EDBA2A4, 0xBE008E50));
}

// Returns the sums of elements 100 to 103 over six ranks at step 3, for seed 7.
template <typename Bits>
std::vector<Bits> sum_of_six(DataType type, uint32_t workers, uint32_t local_ranks) {
  std::vector<Bits> bits(4);
  BenchOracle::make(7, workers, local_ranks)->sum(type, 3, 100, bytes_of(bits));
  return bits;
}

TEST(BenchOracle, RoundsOnceForEveryDivisionIntoWorkers) {
  for (const auto& [workers, local_ranks] : {std::pair(1u, 6u), std::pair(3u, 2u), std::pair(6u, 1u)}) {
    EXPECT_THAT(sum_of_six<uint16_t>(DataType::kFloat16, workers, local_ranks),
                ElementsAre(0x3A89, 0xBEC2, 0xBDE3, 0xB9F9));
    EXPECT_THAT(sum_of_six<uint16_t>(DataType::kBFloat16, workers, local_ranks),
                ElementsAre(0x3F51, 0xBFD8, 0xBFBC, 0xBF3F));
  }
}

TEST(BenchOracle, SumsEveryType) {
  EXPECT_THAT(sum_of_six<uint32_t>(DataType::kFloat32, 3, 2),
              ElementsAre(0x3F510716, 0xBFD83129, 0xBFBC55EE, 0xBF3F154A));
  EXPECT_THAT(sum_of_six<uint64_t>(DataType::kFloat64, 3, 2),
              ElementsAre(0x3FEA20E2C0000000, 0xBFFB062520000000, 0xBFF78ABDC0000000, 0xBFE7E2A940000000));
  EXPECT_THAT(sum_of_six<uint32_t>(DataType::kInt32, 3, 2),
              ElementsAre(0x68838CC3, 0x27CEDB1B, 0x43AA144C, 0xA0755DF4));
}

TEST(BenchOracle, FindsTheFirstWrongElement) {
  BenchOracle oracle = *BenchOracle::make(7, 3, 2);
  std::vector<uint16_t> sums(30000);  // more than one chunk of the oracle
  oracle.sum(DataType::kFloat16, 3, 50, bytes_of(sums));
  EXPECT_EQ(oracle.check(DataType::kFloat16, 3, 50, bytes_of(sums)), std::nullopt);

  EXPECT_NE(oracle.check(DataType::kFloat16, 4, 50, bytes_of(sums)), std::nullopt) << "another step's";
  sums[29999] ^= 1;
  EXPECT_EQ(oracle.check(DataType::kFloat16, 3, 50, bytes_of(sums))->element, 29999);
  sums[53] = 0x3C00;
  const auto mismatch = oracle.check(DataType::kFloat16, 3, 50, bytes_of(sums));
  ASSERT_NE(mismatch, std::nullopt);
  EXPECT_EQ(mismatch->element, 53);
  EXPECT_THAT(mismatch->expected, HasSubstr("0xb9f9"));
  EXPECT_EQ(mismatch->got, "0x3c00 (1)");
}

}  // namespace
}  // namespace gleaner::cli
