// The sums of common/kernels/kernels.h on a GPU, bit for bit: one kernel for each pair of types that sum_launch.h
// names.
//
// Additions and divisions are intrinsics that round to nearest even and that the compiler never contracts into a fused
// multiply-add. The options of the build keep subnormals (-ftz=false). Sources are read by plain loads, not through the
// read-only cache, because the result may be the memory of a source.
#include <cuda_fp16.h>

#include <bit>

#include "comm-lib/device/kernels/sum_arguments.h"
#include "common/kernels/float_formats.h"

namespace gleaner::device {
namespace {

// Each struct describes a data type: how an element is stored, the type in which elements are summed, and the
// conversions between the two.
struct Float32 {
  using Stored = uint32_t;
  using Accumulator = float;
  static __device__ float load(uint32_t bits) { return std::bit_cast<float>(bits); }
  static __device__ uint32_t round(float sum) {
    return sum != sum ? kernels::kNanFloat32 : std::bit_cast<uint32_t>(sum);
  }
};

struct Float64 {
  using Stored = uint64_t;
  using Accumulator = double;
  static __device__ double load(uint64_t bits) { return std::bit_cast<double>(bits); }
  static __device__ uint64_t round(double sum) {
    return sum != sum ? kernels::kNanFloat64 : std::bit_cast<uint64_t>(sum);
  }
};

struct Float16 {
  using Stored = uint16_t;
  using Accumulator = float;
  static __device__ float load(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
  static __device__ uint16_t round(float sum) {
    return sum != sum ? kernels::kNanFloat16 : __half_as_ushort(__float2half_rn(sum));
  }
};

struct BFloat16 {
  using Stored = uint16_t;
  using Accumulator = float;
  static __device__ float load(uint16_t bits) { return kernels::bfloat16_to_float32(bits); }
  static __device__ uint16_t round(float sum) { return kernels::float32_to_bfloat16(sum); }
};

struct Int32 {
  using Stored = uint32_t;
  using Accumulator = uint32_t;  // unsigned, because it wraps around
  static __device__ uint32_t load(uint32_t value) { return value; }
  static __device__ uint32_t round(uint32_t sum) { return sum; }
};

__device__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ double add(double a, double b) { return __dadd_rn(a, b); }
__device__ uint32_t add(uint32_t a, uint32_t b) { return a + b; }

__device__ float divide(float sum, uint32_t divisor) { return __fdiv_rn(sum, static_cast<float>(divisor)); }
__device__ double divide(double sum, uint32_t divisor) { return __ddiv_rn(sum, static_cast<double>(divisor)); }
__device__ uint32_t divide(uint32_t sum, uint32_t) { return sum; }

// Its alignment lets the compiler load and store it by the widest instructions.
template <typename Stored, int kWidth>
struct alignas(sizeof(Stored) * kWidth < kVectorBytes ? sizeof(Stored) * kWidth : kVectorBytes) Vector {
  Stored elements[kWidth];
};

// A thread has so many loads in flight, since additions must wait for one another but loads need not.
constexpr uint32_t kBatch = 4;

// Sums kWidth elements, from element `at` on.
template <typename From, typename To, int kWidth>
__device__ void sum_at(const SumArguments& arguments, uint64_t at) {
  using Source = Vector<typename From::Stored, kWidth>;
  using Result = Vector<typename To::Stored, kWidth>;
  const auto read = [&](uint32_t source) {
    return *reinterpret_cast<const Source*>(arguments.sources[source] + at * sizeof(typename From::Stored));
  };
  typename From::Accumulator sums[kWidth];
  const Source first = read(0);
  for (int i = 0; i < kWidth; ++i) sums[i] = From::load(first.elements[i]);
  for (uint32_t source = 1; source < arguments.count; source += kBatch) {
    Source batch[kBatch];
#pragma unroll
    for (uint32_t b = 0; b < kBatch; ++b) {
      if (source + b < arguments.count) batch[b] = read(source + b);
    }
#pragma unroll
    for (uint32_t b = 0; b < kBatch; ++b) {
      if (source + b >= arguments.count) break;
      for (int i = 0; i < kWidth; ++i) sums[i] = add(sums[i], From::load(batch[b].elements[i]));
    }
  }
  if (arguments.divisor != 1) {
    for (int i = 0; i < kWidth; ++i) sums[i] = divide(sums[i], arguments.divisor);
  }
  Result result;
  for (int i = 0; i < kWidth; ++i) result.elements[i] = To::round(sums[i]);
  *reinterpret_cast<Result*>(arguments.result + at * sizeof(typename To::Stored)) = result;
}

template <typename From, typename To>
__device__ void sum(const SumArguments& arguments) {
  constexpr int kWidth = kVectorBytes / sizeof(typename From::Stored);
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const uint64_t threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t vector = first; vector < arguments.vectors; vector += threads) {
    sum_at<From, To, kWidth>(arguments, arguments.head + vector * kWidth);
  }
  const uint64_t in_vectors = arguments.vectors * kWidth;
  for (uint64_t single = first; single < arguments.elements - in_vectors; single += threads) {
    sum_at<From, To, 1>(arguments, single < arguments.head ? single : single + in_vectors);
  }
}

}  // namespace
}  // namespace gleaner::device

#define GLN_SUM_KERNEL(name, from, to)                                                               \
  extern "C" __global__ void name(const __grid_constant__ gleaner::device::SumArguments arguments) { \
    gleaner::device::sum<gleaner::device::from, gleaner::device::to>(arguments);                     \
  }

GLN_SUM_KERNEL(gleaner_sum_float32, Float32, Float32)
GLN_SUM_KERNEL(gleaner_sum_float64, Float64, Float64)
GLN_SUM_KERNEL(gleaner_sum_float16, Float16, Float16)
GLN_SUM_KERNEL(gleaner_sum_bfloat16, BFloat16, BFloat16)
GLN_SUM_KERNEL(gleaner_sum_int32, Int32, Int32)
GLN_SUM_KERNEL(gleaner_sum_float16_to_float32, Float16, Float32)
GLN_SUM_KERNEL(gleaner_sum_bfloat16_to_float32, BFloat16, Float32)
GLN_SUM_KERNEL(gleaner_sum_float32_to_float16, Float32, Float16)
GLN_SUM_KERNEL(gleaner_sum_float32_to_bfloat16, Float32, BFloat16)
