// Functions that convert fp16 and bf16 to and from fp32. They define the bits that every vector variant must produce.
//
// The functions use integer arithmetic only, so the result depends neither on the floating-point environment nor on the
// compiler. Rounding is to nearest, ties to even. Subnormals are kept. NaN becomes the canonical quiet NaN of the
// target format.
#pragma once

#include <bit>
#include <cstdint>

namespace gleaner::kernels {

inline constexpr uint64_t kNanFloat64 = 0x7FF8000000000000;
inline constexpr uint32_t kNanFloat32 = 0x7FC00000;
inline constexpr uint16_t kNanFloat16 = 0x7E00;
inline constexpr uint16_t kNanBFloat16 = 0x7FC0;

// Returns value / 2^shift rounded to the nearest integer, ties to even. 1 <= shift <= 31.
constexpr uint32_t shift_to_nearest_even(uint32_t value, uint32_t shift) {
  const uint32_t below_half = (uint32_t{1} << (shift - 1)) - 1;
  const uint32_t odd = (value >> shift) & 1;
  return (value + below_half + odd) >> shift;
}

constexpr float float16_to_float32(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = (half >> 10) & 0x1F;
  const uint32_t mantissa = half & 0x3FF;
  if (exponent == 31) {
    return std::bit_cast<float>(mantissa != 0 ? kNanFloat32 : sign | 0x7F800000);
  }
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  if (mantissa == 0) return std::bit_cast<float>(sign);
  // A subnormal is mantissa * 2^-24. Its leading one becomes fp32's hidden bit.
  const auto leading = static_cast<uint32_t>(std::bit_width(mantissa)) - 1;
  return std::bit_cast<float>(sign | (leading + 103) << 23 | ((mantissa << (23 - leading)) & 0x7FFFFF));
}

constexpr uint16_t float32_to_float16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return kNanFloat16;
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7C00);  // 2^16 and above, and infinity
  // 2^-14 and above: a normal number. A value that rounds up to 2^16 carries into infinity.
  if (magnitude >= 0x38800000) {
    return static_cast<uint16_t>(sign | shift_to_nearest_even(magnitude - (uint32_t{112} << 23), 13));
  }
  const uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return static_cast<uint16_t>(sign);  // below 2^-25: rounds to zero
  const uint32_t mantissa = (magnitude & 0x7FFFFF) | 0x800000;
  return static_cast<uint16_t>(sign | shift_to_nearest_even(mantissa, 126 - exponent));
}

constexpr float bfloat16_to_float32(uint16_t bfloat) { return std::bit_cast<float>(uint32_t{bfloat} << 16); }

constexpr uint16_t float32_to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return kNanBFloat16;
  return static_cast<uint16_t>(shift_to_nearest_even(bits, 16));
}

}  // namespace gleaner::kernels
