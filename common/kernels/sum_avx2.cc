// Sums with AVX2, and F16C for the conversions from and to fp16.
#include <immintrin.h>

#include "common/kernels/vector_types.h"

namespace gleaner::kernels {
namespace {

inline __m128i load_128(const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
inline void store_128(std::byte* to, __m128i value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value); }

// Returns bytes of `chosen` where `mask` has ones, and bytes of `otherwise` elsewhere.
inline __m256i select(__m256i mask, __m256i chosen, __m256i otherwise) {
  return _mm256_blendv_epi8(otherwise, chosen, mask);
}

struct Avx2 {
  using Floats = __m256;
  using Doubles = __m256d;
  using Words = __m256i;
  static constexpr size_t kBytes = 32;
  static constexpr size_t kBlockBytes = 128;  // four of 16 registers; eight for fp16 and bf16

  static Words load_words(const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const Words*>(from)); }
  static Floats load_floats(const std::byte* from) { return as_floats(load_words(from)); }
  static Doubles load_doubles(const std::byte* from) { return _mm256_castsi256_pd(load_words(from)); }
  static void store(std::byte* to, Words words) { _mm256_storeu_si256(reinterpret_cast<Words*>(to), words); }

  static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Doubles add(Doubles a, Doubles b) { return _mm256_add_pd(a, b); }
  static Words add(Words a, Words b) { return _mm256_add_epi32(a, b); }
  static Floats divide(Floats a, Floats b) { return _mm256_div_ps(a, b); }
  static Doubles divide(Doubles a, Doubles b) { return _mm256_div_pd(a, b); }
  static Floats floats(float value) { return _mm256_set1_ps(value); }
  static Doubles doubles(double value) { return _mm256_set1_pd(value); }
  static Words words(uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }

  static Words as_words(Floats a) { return _mm256_castps_si256(a); }
  static Floats as_floats(Words a) { return _mm256_castsi256_ps(a); }
  static Words bit_and(Words a, Words b) { return _mm256_and_si256(a, b); }
  static Words shift_left_16(Words a) { return _mm256_slli_epi32(a, 16); }
  static Words shift_right_16(Words a) { return _mm256_srli_epi32(a, 16); }
  static Words interleave_16(Words even, Words odd) { return _mm256_blend_epi16(even, odd, 0xAA); }

  static Words nan_or(Floats sums, Words bits) {
    return select(as_words(_mm256_cmp_ps(sums, sums, _CMP_UNORD_Q)), words(0x7FC00000), bits);
  }
  static Words canonical(Doubles sums) {
    const Words nan = _mm256_castpd_si256(_mm256_cmp_pd(sums, sums, _CMP_UNORD_Q));
    return select(nan, _mm256_set1_epi64x(0x7FF8000000000000), _mm256_castpd_si256(sums));
  }

  static Floats load_float16(const std::byte* from) { return _mm256_cvtph_ps(load_128(from)); }
  // NaN is made canonical before the rounding, which turns fp32's canonical NaN into fp16's.
  static void store_float16(std::byte* to, Floats sums) {
    const Floats canonical = as_floats(nan_or(sums, as_words(sums)));
    store_128(to, _mm256_cvtps_ph(canonical, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static Words load_16(const std::byte* from) { return _mm256_cvtepu16_epi32(load_128(from)); }
  static void store_16(std::byte* to, Words words) {
    store_128(to, _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
  static Floats load_rounded(const std::byte* from) {
    return _mm256_set_m128(_mm256_cvtpd_ps(load_doubles(from + kBytes)), _mm256_cvtpd_ps(load_doubles(from)));
  }
};

}  // namespace

const Variant kAvx2 = vector_variant<Avx2>("avx2");

}  // namespace gleaner::kernels
