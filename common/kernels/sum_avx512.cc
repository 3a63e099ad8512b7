// Sums with AVX-512 F, BW, DQ and VL.
//
// Newer instructions for 16-bit floats don't help. VADDPH (AVX512-FP16) adds in fp16, not in fp32. VCVTPS2PHX rounds as
// VCVTPS2PH does. VCVTNEPS2BF16 (AVX512-BF16) treats fp32 subnormals as zero, whatever MXCSR says, but subnormals must
// be kept. Sums are bound by memory bandwidth, so the few integer instructions used instead cost nothing.
#include <immintrin.h>

#include "common/kernels/variant.h"
#include "common/kernels/vector_sum.h"

namespace gleaner::kernels {
namespace {

constexpr size_t kBlockBytes = 256;  // four of 32 registers; eight for fp16 and bf16

inline __m512i load_512(const std::byte* from) { return _mm512_loadu_si512(from); }
inline __m256i load_256(const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
inline void store_256(std::byte* to, __m256i value) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value); }

// The operations that fp32, fp16 and bf16 share, since all three are summed in fp32.
struct Float32Sums {
  using Vector = __m512;
  static constexpr size_t kLanes = 16;
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector divide(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  static Vector broadcast(uint32_t value) { return _mm512_set1_ps(static_cast<float>(value)); }
  static __mmask16 is_nan(Vector a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
};

struct Float32 : Float32Sums {
  static constexpr size_t kElementBytes = 4;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return _mm512_loadu_ps(from); }
  static void store(std::byte* to, Vector sum) {
    const __m512i bits = _mm512_castps_si512(sum);
    _mm512_storeu_si512(to, _mm512_mask_mov_epi32(bits, is_nan(sum), _mm512_set1_epi32(0x7FC00000)));
  }
};

struct Float16 : Float32Sums {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return _mm512_cvtph_ps(load_256(from)); }
  static void store(std::byte* to, Vector sum) {
    const __m256i rounded = _mm512_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    store_256(to, _mm256_mask_mov_epi16(rounded, is_nan(sum), _mm256_set1_epi16(0x7E00)));
  }
};

// Thirty-two elements at once: one vector has the elements at even indices, the other those at odd indices. A shift or
// a mask alone turns each vector into fp32.
struct BFloat16 {
  struct Vector {
    __m512 even;
    __m512 odd;
  };
  static constexpr size_t kLanes = 32;
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) {
    const __m512i bits = load_512(from);
    return {_mm512_castsi512_ps(_mm512_slli_epi32(bits, 16)),
            _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))))};
  }
  static Vector add(Vector a, Vector b) { return {_mm512_add_ps(a.even, b.even), _mm512_add_ps(a.odd, b.odd)}; }
  static Vector divide(Vector a, Vector b) { return {_mm512_div_ps(a.even, b.even), _mm512_div_ps(a.odd, b.odd)}; }
  static Vector broadcast(uint32_t value) {
    const __m512 all = Float32Sums::broadcast(value);
    return {all, all};
  }
  // Rounds to nearest even; store() keeps the upper 16 bits. Adds just under half of the last bit that is kept, and one
  // more where that bit is odd.
  static __m512i round(__m512 sum) {
    const __m512i bits = _mm512_castps_si512(sum);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i carried = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    return _mm512_mask_mov_epi32(carried, Float32Sums::is_nan(sum), _mm512_set1_epi32(0x7FC00000));
  }
  static void store(std::byte* to, Vector sum) {
    const __m512i even = _mm512_srli_epi32(round(sum.even), 16);
    _mm512_storeu_si512(to, _mm512_mask_blend_epi16(0xAAAAAAAA, even, round(sum.odd)));
  }
};

struct Float64 {
  using Vector = __m512d;
  static constexpr size_t kLanes = 8;
  static constexpr size_t kElementBytes = 8;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return _mm512_loadu_pd(from); }
  static Vector add(Vector a, Vector b) { return _mm512_add_pd(a, b); }
  static Vector divide(Vector a, Vector b) { return _mm512_div_pd(a, b); }
  static Vector broadcast(uint32_t value) { return _mm512_set1_pd(value); }
  static void store(std::byte* to, Vector sum) {
    const __mmask8 nan = _mm512_cmp_pd_mask(sum, sum, _CMP_UNORD_Q);
    const __m512i bits = _mm512_castpd_si512(sum);
    _mm512_storeu_si512(to, _mm512_mask_mov_epi64(bits, nan, _mm512_set1_epi64(0x7FF8000000000000)));
  }
};

struct Int32 {
  using Vector = __m512i;
  static constexpr size_t kLanes = 16;
  static constexpr size_t kElementBytes = 4;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return load_512(from); }
  static Vector add(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  static Vector divide(Vector a, Vector) { return a; }  // int32 is never divided: kernels.h allows only the divisor 1
  static Vector broadcast(uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }
  static void store(std::byte* to, Vector sum) { _mm512_storeu_si512(to, sum); }
};

// Sixteen bf16 elements, in order: their bits are the upper halves of fp32.
inline __m512 load_bfloat16(const std::byte* from) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_256(from)), 16));
}

inline void store_bfloat16(std::byte* to, __m512 sum) {
  store_256(to, _mm512_cvtepi32_epi16(_mm512_srli_epi32(BFloat16::round(sum), 16)));
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

const Variant kAvx512 = {"avx512",
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
