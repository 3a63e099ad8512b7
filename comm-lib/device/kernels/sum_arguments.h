// SumArguments is the parameter of every kernel in sum.cu, passed by value. The host, nvcc and the double of the driver
// (tests/doubles/cuda) compile this header.
//
// A kernel reads its elements in *vectors* of 16 bytes, if all addresses allow it:
//
//   head elements | vectors | the remaining elements
//
// The elements before and after the vectors are read one by one. With vectors = 0 these are all elements.
#pragma once

#include <cstdint>

namespace gleaner::device {

inline constexpr uint32_t kMostSources = 64;
inline constexpr uint32_t kVectorBytes = 16;  // of the sources' type; the widest load of a thread
inline constexpr uint32_t kThreadsPerBlock = 256;

struct SumArguments {
  uint64_t sources[kMostSources];  // addresses, in the order of the additions
  uint64_t result;                 // address
  uint64_t elements;
  uint64_t head;     // elements before the vectors; less than the elements of a vector
  uint64_t vectors;  // number of vectors
  uint32_t count;    // number of sources
  uint32_t divisor;  // 1: no division
};

// The parameters of a kernel have at most 4 KiB on all GPUs.
static_assert(sizeof(SumArguments) == 8 * kMostSources + 40);

}  // namespace gleaner::device
