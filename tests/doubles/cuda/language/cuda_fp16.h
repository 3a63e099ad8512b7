// The part of CUDA's header of this name that sum.cu uses.
#pragma once

#include "common/kernels/float_formats.h"

struct __half {
  uint16_t bits;
};

inline __half __ushort_as_half(uint16_t bits) { return {bits}; }
inline uint16_t __half_as_ushort(__half half) { return half.bits; }
inline float __half2float(__half half) { return gleaner::kernels::float16_to_float32(half.bits); }
inline __half __float2half_rn(float value) { return {gleaner::kernels::float32_to_float16(value)}; }
