// Sums with AVX2, and F16C for the conversions from and to fp16.
#include <immintrin.h>

#include "common/kernels/variant.h"
#include "common/kernels/vector_sum.h"

namespace gleaner::kernels {
namespace {

constexpr size_t kBlockBytes = 128;  // four of 16 registers; eight for fp16 and bf16

inline __m128i load_128(const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
inline __m256i load_256(const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
inline void store_128(std::byte* to, __m128i value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value); }
inline void store_256(std::byte* to, __m256i value) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value); }

// Returns bytes of `chosen` where `mask` has ones, and bytes of `otherwise` elsewhere.
inline __m256i select(__m256i mask, __m256i chosen, __m256i otherwise) {
  return _mm256_blendv_epi8(otherwise, chosen, mask);
}

// The operations that fp32, fp16 and bf16 share, since all three are summed in fp32.
struct Float32Sums {
  using Vector = __m256;
  static constexpr size_t kLanes = 8;
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector divide(Vector a, Vector b) { return _mm256_div_ps(a, b); }
  static Vector broadcast(uint32_t value) { return _mm256_set1_ps(static_cast<float>(value)); }
  static __m256i is_nan(Vector a) { return _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)); }
};

struct Float32 : Float32Sums {
  static constexpr size_t kElementBytes = 4;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return _mm256_castsi256_ps(load_256(from)); }
  static void store(std::byte* to, Vector sum) {
    store_256(to, select(is_nan(sum), _mm256_set1_epi32(0x7FC00000), _mm256_castps_si256(sum)));
  }
};

struct Float16 : Float32Sums {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return _mm256_cvtph_ps(load_128(from)); }
  // NaN is made canonical before the rounding, which turns fp32's canonical NaN into fp16's.
  static void store(std::byte* to, Vector sum) {
    const __m256i bits = select(is_nan(sum), _mm256_set1_epi32(0x7FC00000), _mm256_castps_si256(sum));
    store_128(to, _mm256_cvtps_ph(_mm256_castsi256_ps(bits), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};

// Sixteen elements at once: one vector has the elements at even indices, the other those at odd indices. A shift or a
// mask alone turns each vector into fp32.
struct BFloat16 {
  struct Vector {
    __m256 even;
    __m256 odd;
  };
  static constexpr size_t kLanes = 16;
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) {
    const __m256i bits = load_256(from);
    return {_mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)),
            _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(0xFFFF0000))))};
  }
  static Vector add(Vector a, Vector b) { return {_mm256_add_ps(a.even, b.even), _mm256_add_ps(a.odd, b.odd)}; }
  static Vector divide(Vector a, Vector b) { return {_mm256_div_ps(a.even, b.even), _mm256_div_ps(a.odd, b.odd)}; }
  static Vector broadcast(uint32_t value) {
    const __m256 all = Float32Sums::broadcast(value);
    return {all, all};
  }
  // Rounds to nearest even; store() keeps the upper 16 bits. Adds just under half of the last bit that is kept, and one
  // more where that bit is odd.
  static __m256i round(__m256 sum) {
    const __m256i bits = _mm256_castps_si256(sum);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i carried = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
    return select(Float32Sums::is_nan(sum), _mm256_set1_epi32(0x7FC00000), carried);
  }
  static void store(std::byte* to, Vector sum) {
    const __m256i even = _mm256_srli_epi32(round(sum.even), 16);
    store_256(to, _mm256_blend_epi16(even, round(sum.odd), 0xAA));
  }
};

struct Float64 {
  using Vector = __m256d;
  static constexpr size_t kLanes = 4;
  static constexpr size_t kElementBytes = 8;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return _mm256_castsi256_pd(load_256(from)); }
  static Vector add(Vector a, Vector b) { return _mm256_add_pd(a, b); }
  static Vector divide(Vector a, Vector b) { return _mm256_div_pd(a, b); }
  static Vector broadcast(uint32_t value) { return _mm256_set1_pd(value); }
  static void store(std::byte* to, Vector sum) {
    const __m256i nan = _mm256_castpd_si256(_mm256_cmp_pd(sum, sum, _CMP_UNORD_Q));
    store_256(to, select(nan, _mm256_set1_epi64x(0x7FF8000000000000), _mm256_castpd_si256(sum)));
  }
};

struct Int32 {
  using Vector = __m256i;
  static constexpr size_t kLanes = 8;
  static constexpr size_t kElementBytes = 4;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return load_256(from); }
  static Vector add(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static Vector divide(Vector a, Vector) { return a; }  // int32 is never divided: kernels.h allows only the divisor 1
  static Vector broadcast(uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }
  static void store(std::byte* to, Vector sum) { store_256(to, sum); }
};

// Eight bf16 elements, in order: their bits are the upper halves of fp32.
inline __m256 load_bfloat16(const std::byte* from) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_128(from)), 16));
}

inline void store_bfloat16(std::byte* to, __m256 sum) {
  const __m256i bits = _mm256_srli_epi32(BFloat16::round(sum), 16);
  store_128(to, _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1)));
}

struct Float16ToFloat32 : Float32Sums {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kResultBytes = 4;
  static Vector load(const std::byte* from) { return Float16::load(from); }
  static void store(std::byte* to, Vector sum) { Float32::store(to, sum); }
};

struct BFloat16ToFloat32 : Float32Sums {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kResultBytes = 4;
  static Vector load(const std::byte* from) { return load_bfloat16(from); }
  static void store(std::byte* to, Vector sum) { Float32::store(to, sum); }
};

struct Float32ToFloat16 : Float32Sums {
  static constexpr size_t kElementBytes = 4;
  static constexpr size_t kResultBytes = 2;
  static Vector load(const std::byte* from) { return Float32::load(from); }
  static void store(std::byte* to, Vector sum) { Float16::store(to, sum); }
};

struct Float32ToBFloat16 : Float32Sums {
  static constexpr size_t kElementBytes = 4;
  static constexpr size_t kResultBytes = 2;
  static Vector load(const std::byte* from) { return Float32::load(from); }
  static void store(std::byte* to, Vector sum) { store_bfloat16(to, sum); }
};

}  // namespace

const Variant kAvx2 = {"avx2",
                       vector_sum<Float32, kBlockBytes>,
                       vector_sum<Float64, kBlockBytes>,
                       vector_sum<Float16, kBlockBytes>,
                       vector_sum<BFloat16, kBlockBytes>,
                       vector_sum<Int32, kBlockBytes>,
                       vector_sum<Float16ToFloat32, kBlockBytes>,
                       vector_sum<BFloat16ToFloat32, kBlockBytes>,
                       vector_sum<Float32ToFloat16, kBlockBytes>,
                       vector_sum<Float32ToBFloat16, kBlockBytes>};

}  // namespace gleaner::kernels
