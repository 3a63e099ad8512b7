// Variant is one implementation of the sums, with a function per data type. Internal to this folder.
//
// The translation units of the variants are compiled for instruction sets that the processor may lack. If several
// translation units have an inline function, the linker keeps only one copy, and that copy could use such instructions.
// So the variants share no inline function with the rest of the program: the types here are plain (no std::span), and
// tests/unit/kernels checks the object files for weak symbols.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/kernels/block_values.h"

namespace gleaner::kernels {

// Like Kernels::sum() for fixed types, with `count` sources. Needs the default floating-point environment.
using SumFunction = void (*)(const std::byte* const* sources, size_t count, std::byte* result, size_t elements,
                             uint32_t divisor);

// Which fp32 elements lose their value in a 16-bit type, by their bits without the sign.
struct LossLimits {
  int32_t clipped;    // from here on, finite values round to infinity
  int32_t flushed;    // up to here, other values than zero round to zero
  uint16_t infinity;  // bits of infinity in the 16-bit type
};

// Adds, to counts[0] and counts[1], the numbers of elements at `source` that are clipped and flushed. `rounded` has the
// rounded elements, at most 2^31 of them.
using LossFunction = void (*)(const std::byte* source, const std::byte* rounded, size_t elements,
                              const LossLimits& limits, uint64_t* counts);

// Like Kernels::l1_norms() for a fixed type. Needs the default floating-point environment.
using NormFunction = void (*)(const std::byte* values, size_t rows, size_t columns, float* norms);

struct NormTable {
  NormFunction float32;
  NormFunction float64;
  NormFunction float16;
  NormFunction bfloat16;
};

struct BlockFunctions {
  void (*encode)(const BlockSource& source, std::byte* blocks);
  void (*decode)(const BlockTarget& target, const std::byte* blocks);
  SumFunction sum;            // to results: blocks of the same type, or bytes for signs
  SumFunction to_float32s;    // to partial sums
  SumFunction from_float32s;  // from partial sums to results
};

struct BlockTable {
  BlockFunctions int8;
  BlockFunctions int4;
  BlockFunctions sign;
  BlockFunctions top[8];     // by log2(k)
  BlockFunctions random[8];  // by log2(k)
};

struct Variant {
  const char* name;
  SumFunction float32;
  SumFunction float64;
  SumFunction float16;
  SumFunction bfloat16;
  SumFunction int32;
  // From the sources' type to the result's type.
  SumFunction float16_to_float32;
  SumFunction bfloat16_to_float32;
  SumFunction float32_to_float16;
  SumFunction float32_to_bfloat16;
  LossFunction count_losses;
  NormTable l1_norms;
  BlockTable blocks;
};

extern const Variant kScalar;  // the oracle
extern const Variant kAvx2;    // AVX2 and F16C
extern const Variant kAvx512;  // AVX-512 F, BW, DQ, VL

}  // namespace gleaner::kernels
