// Compares fp16 and bf16 with their definition in floating-point arithmetic, and with the results of numpy and PyTorch.
#include "common/kernels/float_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace gleaner::kernels {
namespace {

struct Format {
  int mantissa_bits;
  int least_exponent;  // of normal numbers
  int exponent_bits;
};
constexpr Format kFloat16 = {10, -14, 5};
constexpr Format kBFloat16 = {7, -126, 8};

// Returns the value of `bits` by the definition of IEEE 754.
double value_of(uint16_t bits, const Format& format) {
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int exponent = (bits & 0x7FFF) >> format.mantissa_bits;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << format.exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  const double significand = mantissa + (exponent != 0 ? 1 << format.mantissa_bits : 0);
  return sign * std::ldexp(significand, std::max(exponent, 1) - 1 + format.least_exponent - format.mantissa_bits);
}

// Returns the nearest value of the format, ties to even, as a double.
double rounded(double value, const Format& format) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.least_exponent);
  const double last_place = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double nearest = std::nearbyint(value / last_place) * last_place;
  const double limit = std::ldexp(1.0, (1 << (format.exponent_bits - 1)));
  return std::abs(nearest) >= limit ? std::copysign(std::numeric_limits<double>::infinity(), value) : nearest;
}

TEST(FloatFormats, EveryValueWidensExactlyAndComesBack) {
  for (uint32_t i = 0; i <= 0xFFFF; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const double half = value_of(bits, kFloat16);
    if (std::isnan(half)) {
      ASSERT_EQ(std::bit_cast<uint32_t>(float16_to_float32(bits)), kNanFloat32) << i;
      ASSERT_EQ(float32_to_float16(float16_to_float32(bits)), kNanFloat16) << i;
    } else {
      ASSERT_EQ(float16_to_float32(bits), half) << i;
      ASSERT_EQ(float32_to_float16(float16_to_float32(bits)), bits) << i;
    }
    const double bfloat = value_of(bits, kBFloat16);
    if (std::isnan(bfloat)) {
      ASSERT_EQ(float32_to_bfloat16(bfloat16_to_float32(bits)), kNanBFloat16) << i;
    } else {
      ASSERT_EQ(bfloat16_to_float32(bits), bfloat) << i;
      ASSERT_EQ(float32_to_bfloat16(bfloat16_to_float32(bits)), bits) << i;
    }
  }
}

void expect_nearest(uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  if (std::isnan(value)) {
    ASSERT_EQ(float32_to_float16(value), kNanFloat16) << bits;
    ASSERT_EQ(float32_to_bfloat16(value), kNanBFloat16) << bits;
    return;
  }
  const uint16_t half = float32_to_float16(value);
  const uint16_t bfloat = float32_to_bfloat16(value);
  ASSERT_EQ(value_of(half, kFloat16), rounded(value, kFloat16)) << bits;
  ASSERT_EQ(value_of(bfloat, kBFloat16), rounded(value, kBFloat16)) << bits;
  ASSERT_EQ(half >> 15, bits >> 31) << bits;
  ASSERT_EQ(bfloat >> 15, bits >> 31) << bits;
}

TEST(FloatFormats, NarrowsToTheNearestTiesToEven) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) ASSERT_NO_FATAL_FAILURE(expect_nearest(static_cast<uint32_t>(random())));
}

TEST(FloatFormats, NarrowsRightAroundEveryTie) {
  for (uint32_t i = 0; i < 0xFFFF; ++i) {
    // Checks the tie between two neighbours of each format, and the fp32 numbers just below and above it.
    const auto bits = static_cast<uint16_t>(i);
    const double low = value_of(bits, kFloat16);
    const double high = value_of(static_cast<uint16_t>(bits + 1), kFloat16);
    if (std::isfinite(low) && std::isfinite(high)) {
      const uint32_t tie = std::bit_cast<uint32_t>(static_cast<float>((low + high) / 2));
      for (uint32_t near : {tie - 1, tie, tie + 1}) ASSERT_NO_FATAL_FAILURE(expect_nearest(near));
    }
    const uint32_t tie = i << 16 | 0x8000;
    for (uint32_t near : {tie - 1, tie, tie + 1}) ASSERT_NO_FATAL_FAILURE(expect_nearest(near));
  }
}

// Each line has fp32 bits, fp16 bits as numpy 1.24 rounds them, and bf16 bits as PyTorch 1.13 does.
TEST(FloatFormats, AgreesWithNumpyAndPyTorch) {
  struct Known {
    uint32_t value;
    uint16_t half;
    uint16_t bfloat;
  };
  constexpr Known kKnown[] = {
      {0x3F800000, 0x3C00, 0x3F80},  // 1.0
      {0xC0200000, 0xC100, 0xC020},  // -2.5
      {0x477FE000, 0x7BFF, 0x4780},  // 65504: fp16's greatest
      {0x477FEFFF, 0x7BFF, 0x4780},  // 65519.996
      {0x477FF000, 0x7C00, 0x4780},  // 65520: rounds to infinity
      {0x49742400, 0x7C00, 0x4974},  // 1e6
      {0x33800000, 0x0001, 0x3380},  // 2^-24: fp16's least
      {0x33000000, 0x0000, 0x3300},  // 2^-25: a tie, to even
      {0x33000002, 0x0001, 0x3300},  // just above
      {0x33C00000, 0x0002, 0x33C0},  // 1.5 * 2^-24: a tie, to even
      {0x38800000, 0x0400, 0x3880},  // 2^-14: fp16's least normal
      {0x387FFBF7, 0x0400, 0x3880},  // just below
      {0x3F801000, 0x3C00, 0x3F80},  // 1 + 2^-11: a tie
      {0x3F803000, 0x3C02, 0x3F80},  // 1 + 3 * 2^-11: a tie
      {0x7F7FFFFF, 0x7C00, 0x7F80},  // fp32's greatest
      {0x00000001, 0x0000, 0x0000},  // fp32's least
      {0x00800000, 0x0000, 0x0080},  // 2^-126
      {0x00010000, 0x0000, 0x0001},  // bf16's least
      {0x00008000, 0x0000, 0x0000},  // half of it: a tie
      {0x0000803B, 0x0000, 0x0001},  // just above
      {0x7F7F8000, 0x7C00, 0x7F80},  // a tie at bf16's greatest: infinity
      {0x7F7F0000, 0x7C00, 0x7F7F},  // bf16's greatest
      {0xBDCCCCCD, 0xAE66, 0xBDCD},  // -0.1
  };
  for (const Known& known : kKnown) {
    const auto value = std::bit_cast<float>(known.value);
    EXPECT_EQ(float32_to_float16(value), known.half) << value;
    EXPECT_EQ(float32_to_bfloat16(value), known.bfloat) << value;
  }
}

}  // namespace
}  // namespace gleaner::kernels
