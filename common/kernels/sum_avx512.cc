// Sums with AVX-512 F, BW, DQ and VL.
//
// Newer instructions for 16-bit floats don't help. VADDPH (AVX512-FP16) adds in fp16, not in fp32. VCVTPS2PHX rounds as
// VCVTPS2PH does. VCVTNEPS2BF16 (AVX512-BF16) treats fp32 subnormals as zero, whatever MXCSR says, but subnormals must
// be kept. Sums are bound by memory bandwidth, so the few integer instructions used instead cost nothing.
#include <immintrin.h>

#include "common/kernels/vector_types.h"

namespace gleaner::kernels {
namespace {

inline __m256i load_256(const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
inline void store_256(std::byte* to, __m256i value) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value); }

struct Avx512 {
  using Floats = __m512;
  using Doubles = __m512d;
  using Words = __m512i;
  static constexpr size_t kBytes = 64;
  static constexpr size_t kBlockBytes = 256;  // four of 32 registers; eight for fp16 and bf16

  static Words load_words(const std::byte* from) { return _mm512_loadu_si512(from); }
  static Floats load_floats(const std::byte* from) { return _mm512_loadu_ps(from); }
  static Doubles load_doubles(const std::byte* from) { return _mm512_loadu_pd(from); }
  static void store(std::byte* to, Words words) { _mm512_storeu_si512(to, words); }

  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Doubles add(Doubles a, Doubles b) { return _mm512_add_pd(a, b); }
  static Words add(Words a, Words b) { return _mm512_add_epi32(a, b); }
  static Floats divide(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  static Doubles divide(Doubles a, Doubles b) { return _mm512_div_pd(a, b); }
  static Floats floats(float value) { return _mm512_set1_ps(value); }
  static Doubles doubles(double value) { return _mm512_set1_pd(value); }
  static Words words(uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }

  static Words as_words(Floats a) { return _mm512_castps_si512(a); }
  static Floats as_floats(Words a) { return _mm512_castsi512_ps(a); }
  static Words bit_and(Words a, Words b) { return _mm512_and_si512(a, b); }
  static Words shift_left_16(Words a) { return _mm512_slli_epi32(a, 16); }
  static Words shift_right_16(Words a) { return _mm512_srli_epi32(a, 16); }
  static Words interleave_16(Words even, Words odd) { return _mm512_mask_blend_epi16(0xAAAAAAAA, even, odd); }

  static Words nan_or(Floats sums, Words bits) {
    return _mm512_mask_mov_epi32(bits, _mm512_cmp_ps_mask(sums, sums, _CMP_UNORD_Q), words(0x7FC00000));
  }
  static Words canonical(Doubles sums) {
    const __mmask8 nan = _mm512_cmp_pd_mask(sums, sums, _CMP_UNORD_Q);
    return _mm512_mask_mov_epi64(_mm512_castpd_si512(sums), nan, _mm512_set1_epi64(0x7FF8000000000000));
  }

  static Floats load_float16(const std::byte* from) { return _mm512_cvtph_ps(load_256(from)); }
  static void store_float16(std::byte* to, Floats sums) {
    const __m256i rounded = _mm512_cvtps_ph(sums, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __mmask16 nan = _mm512_cmp_ps_mask(sums, sums, _CMP_UNORD_Q);
    store_256(to, _mm256_mask_mov_epi16(rounded, nan, _mm256_set1_epi16(0x7E00)));
  }
  static Words load_16(const std::byte* from) { return _mm512_cvtepu16_epi32(load_256(from)); }
  static void store_16(std::byte* to, Words words) { store_256(to, _mm512_cvtepi32_epi16(words)); }
  static Floats load_rounded(const std::byte* from) {
    const __m512 low = _mm512_castps256_ps512(_mm512_cvtpd_ps(load_doubles(from)));
    return _mm512_insertf32x8(low, _mm512_cvtpd_ps(load_doubles(from + kBytes)), 1);
  }
};

}  // namespace

const Variant kAvx512 = vector_variant<Avx512>("avx512");

}  // namespace gleaner::kernels
