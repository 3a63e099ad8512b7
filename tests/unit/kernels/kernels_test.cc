// Tests the contract in kernels.h for every variant, against values that do not come from the kernels.
#include "common/kernels/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include <xmmintrin.h>

#include "tests/unit/kernels/hard_values.h"

namespace gleaner::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::vector<T> sum(const Kernels& kernels, DataType type, const std::vector<std::vector<T>>& sources,
                   uint32_t divisor = 1) {
  std::vector<const std::byte*> pointers;
  for (const auto& source : sources) pointers.push_back(reinterpret_cast<const std::byte*>(source.data()));
  std::vector<T> result(sources[0].size());
  kernels.sum(type, pointers, reinterpret_cast<std::byte*>(result.data()), result.size(), divisor);
  return result;
}

class EveryVariant : public ::testing::TestWithParam<std::string> {
 protected:
  const Kernels kernels_ = *Kernels::choose(GetParam());
};

std::vector<std::string> variants() {
  std::vector<std::string> names;
  for (absl::string_view name : available_variants()) names.emplace_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Kernels, EveryVariant, ::testing::ValuesIn(variants()),
                         [](const auto& tested) { return tested.param; });

TEST_P(EveryVariant, AddsInTheOrderGiven) {
  // 2^24 + 1 is a tie in fp32, so the result shows in which order the two ones and 2^24 were added.
  constexpr float kBig = 16777216.0f;
  EXPECT_THAT(sum<float>(kernels_, DataType::kFloat32, {{kBig}, {1}, {1}}), ElementsAre(kBig));
  EXPECT_THAT(sum<float>(kernels_, DataType::kFloat32, {{1}, {1}, {kBig}}), ElementsAre(kBig + 2));
}

// A double holds the sum or quotient of two fp32 numbers exactly enough that rounding it to fp32 gives the correctly
// rounded fp32 result (53 >= 2*24+2).
TEST_P(EveryVariant, RoundsEveryStepOfFloat32Once) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(-1e3f, 1e3f);
  std::vector<std::vector<float>> sources(5, std::vector<float>(1000));
  for (auto& source : sources) {
    for (float& value : source) value = std::ldexp(uniform(random), static_cast<int>(random() % 20));
  }
  for (uint32_t divisor : {1u, 2u, 3u, 7u, 8u, 1000u}) {
    const std::vector<float> result = sum(kernels_, DataType::kFloat32, sources, divisor);
    for (size_t i = 0; i < result.size(); ++i) {
      float expected = sources[0][i];
      for (size_t s = 1; s < sources.size(); ++s) {
        expected = static_cast<float>(static_cast<double>(expected) + static_cast<double>(sources[s][i]));
      }
      expected = static_cast<float>(static_cast<double>(expected) / divisor);
      ASSERT_EQ(std::bit_cast<uint32_t>(result[i]), std::bit_cast<uint32_t>(expected)) << i << " / " << divisor;
    }
  }
}

TEST_P(EveryVariant, SumsSixteenBitFloatsInFloat32) {
  // 2048 + 1 is a tie in fp16 (rounds to 2048), and 256 + 1 is one in bf16 (rounds to 256), so only a wider accumulator
  // gives these sums.
  EXPECT_THAT(sum<uint16_t>(kernels_, DataType::kFloat16, {{0x6800}, {0x3C00}, {0x3C00}}), ElementsAre(0x6801));
  EXPECT_THAT(sum<uint16_t>(kernels_, DataType::kBFloat16, {{0x4380}, {0x3F80}, {0x3F80}}), ElementsAre(0x4381));
  // 65504 + 65504 exceeds the range of fp16; their average does not.
  EXPECT_THAT(sum<uint16_t>(kernels_, DataType::kFloat16, {{0x7BFF}, {0x7BFF}}), ElementsAre(0x7C00));
  EXPECT_THAT(sum<uint16_t>(kernels_, DataType::kFloat16, {{0x7BFF}, {0x7BFF}}, 2), ElementsAre(0x7BFF));
  // (1 + 2^-10) / 3 is 1366.67 units of 2^-12, so it rounds to 1367.
  EXPECT_THAT(sum<uint16_t>(kernels_, DataType::kFloat16, {{0x3C00}, {0x1400}}, 3), ElementsAre(0x3557));
}

// 20000 is 0x74E2 in fp16. Four of them exceed the range of fp16, and their average does not.
TEST_P(EveryVariant, PartialSumsAreNotRounded) {
  const std::vector<uint16_t> halves = {0x74E2, 0x7BFF, 0xFE01};
  const std::byte* const bytes = reinterpret_cast<const std::byte*>(halves.data());
  const std::vector<const std::byte*> four(4, bytes);
  std::vector<float> partial(3);
  kernels_.sum(DataType::kFloat16, DataType::kFloat32, four, reinterpret_cast<std::byte*>(partial.data()), 3, 1);
  EXPECT_EQ(partial[0], 80000.0f);
  EXPECT_EQ(partial[1], 4 * 65504.0f);
  EXPECT_EQ(std::bit_cast<uint32_t>(partial[2]), 0x7FC00000u);
  const std::byte* const sum = reinterpret_cast<const std::byte*>(partial.data());
  std::vector<uint16_t> result(3);
  kernels_.sum(DataType::kFloat32, DataType::kFloat16, std::span(&sum, 1), reinterpret_cast<std::byte*>(result.data()),
               3, 4);
  EXPECT_THAT(result, ElementsAre(0x74E2, 0x7BFF, 0x7E00));
}

TEST_P(EveryVariant, SumsFloat64) {
  EXPECT_THAT(sum<double>(kernels_, DataType::kFloat64, {{0.1, 1e300}, {0.2, -1e300}, {0.3, 1}}),
              ElementsAre(0.1 + 0.2 + 0.3, 1.0));
  EXPECT_THAT(sum<double>(kernels_, DataType::kFloat64, {{1.0}, {1.0}}, 3), ElementsAre(2.0 / 3.0));
}

TEST_P(EveryVariant, WrapsInt32Around) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  EXPECT_THAT(sum<int32_t>(kernels_, DataType::kInt32, {{kMax, -5}, {1, 3}, {1, 2}}), ElementsAre(-kMax, 0));
}

TEST_P(EveryVariant, MakesNanCanonical) {
  constexpr uint32_t kInfinity = 0x7F800000;
  EXPECT_THAT(sum<uint32_t>(kernels_, DataType::kFloat32,
                            {{0xFFC12345, 0x7F800001, kInfinity, 0xFF800000, 0x3F800000},
                             {0x3F800000, 0x3F800000, 0xFF800000, 0xFF800000, 0x7FFFFFFF}}),
              ElementsAre(0x7FC00000, 0x7FC00000, 0x7FC00000, 0xFF800000, 0x7FC00000));
  EXPECT_THAT(sum<uint64_t>(kernels_, DataType::kFloat64, {{0xFFF8000000000001}, {0}}),
              ElementsAre(0x7FF8000000000000));
  EXPECT_THAT(sum<uint16_t>(kernels_, DataType::kFloat16, {{0xFE01, 0x7C01}}), ElementsAre(0x7E00, 0x7E00));
  EXPECT_THAT(sum<uint16_t>(kernels_, DataType::kBFloat16, {{0xFF81, 0xFFFF}}), ElementsAre(0x7FC0, 0x7FC0));
}

TEST_P(EveryVariant, KeepsSubnormalNumbersAndTheSignOfZero) {
  EXPECT_THAT(sum<uint32_t>(kernels_, DataType::kFloat32, {{1, 0x80000000, 0x80000000}, {2, 0x80000000, 0}}),
              ElementsAre(3, 0x80000000, 0));
  EXPECT_THAT(sum<uint16_t>(kernels_, DataType::kFloat16, {{1, 0x8000}, {2, 0x8000}}), ElementsAre(3, 0x8000));
  EXPECT_THAT(sum<uint16_t>(kernels_, DataType::kBFloat16, {{1, 0x8001}, {2, 0x8002}}), ElementsAre(3, 0x8003));
}

TEST_P(EveryVariant, IgnoresTheCallersFloatingPointModes) {
  const uint32_t before = _mm_getcsr();
  const uint32_t odd_modes = before | 0x8040 | 0x6000;  // flush to zero, denormals are zero, round towards zero
  const std::vector<std::vector<uint32_t>> sources = {{1, 0x3F800000}, {2, 0x33C00000}};
  _mm_setcsr(odd_modes);
  const std::vector<uint32_t> result = sum(kernels_, DataType::kFloat32, sources);
  const uint32_t after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_THAT(result, ElementsAre(3, 0x3F800001));
  EXPECT_EQ(after, odd_modes);
}

TEST_P(EveryVariant, IsChosenByName) { EXPECT_EQ(kernels_.name(), GetParam()); }

TEST(Kernels, TheBestVariantIsTheDefault) {
  ASSERT_FALSE(available_variants().empty());
  EXPECT_EQ(available_variants().front(), "scalar");
  EXPECT_EQ(Kernels::choose("")->name(), available_variants().back());
}

TEST(Kernels, AnUnknownVariantIsAnErrorThatListsThemAll) {
  const absl::Status status = Kernels::choose("sse9").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'sse9'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("scalar"));
}

TEST(Kernels, AVariantThatTheProcessorLacksIsRefused) {
  for (absl::string_view name : {"avx2", "avx512"}) {
    const auto available = available_variants();
    const bool runs = std::find(available.begin(), available.end(), name) != available.end();
    const absl::StatusCode expected = runs ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition;
    EXPECT_EQ(Kernels::choose(name).status().code(), expected) << std::string(name);
  }
}

// The kernels' conversions say which elements lose their value.
TEST_P(EveryVariant, CountsTheElementsThatLoseTheirValue) {
  std::mt19937_64 random(7);
  std::vector<float> values(20'003);
  fill(DataType::kFloat32, std::as_writable_bytes(std::span(values)), random);
  for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    const std::byte* source = reinterpret_cast<const std::byte*>(values.data());
    std::vector<uint16_t> rounded(values.size()), narrowed(values.size());
    kernels_.sum(DataType::kFloat32, type, {&source, 1}, reinterpret_cast<std::byte*>(rounded.data()), values.size(),
                 1);
    const int infinite = type == DataType::kFloat16 ? 0x7C00 : 0x7F80;
    Losses expected;
    for (size_t i = 0; i < values.size(); ++i) {
      expected.clipped += std::isfinite(values[i]) && (rounded[i] & 0x7FFF) == infinite;
      expected.flushed += values[i] != 0 && (rounded[i] & 0x7FFF) == 0;
    }
    EXPECT_EQ(kernels_.narrow(type, source, reinterpret_cast<std::byte*>(narrowed.data()), values.size()), expected);
    EXPECT_EQ(narrowed, rounded);
    EXPECT_GT(expected.clipped, 0u);
    EXPECT_GT(expected.flushed, 0u);
  }
}

TEST_P(EveryVariant, FindsTheOnlyElementThatLosesItsValue) {
  for (const size_t at : {size_t{0}, size_t{31}, size_t{4095}, size_t{4096}, size_t{9998}}) {
    for (const float lost : {1e6f, -1e-9f}) {
      std::vector<float> values(9999, 1.0f);
      values[at] = lost;
      std::vector<uint16_t> narrowed(values.size());
      const Losses losses = kernels_.narrow(DataType::kFloat16, reinterpret_cast<const std::byte*>(values.data()),
                                            reinterpret_cast<std::byte*>(narrowed.data()), values.size());
      EXPECT_EQ(losses, (lost > 1 ? Losses{.clipped = 1} : Losses{.flushed = 1})) << at;
    }
  }
}

}  // namespace
}  // namespace gleaner::kernels
