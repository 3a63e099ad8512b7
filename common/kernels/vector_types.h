// The data types that the vector variants sum, for the loops of vector_sum.h, over the instructions of one set.
// Internal to this folder: only translation units that are compiled for an instruction set include it. Everything here
// has internal linkage, so each translation unit has its own copy (see variant.h).
//
// `Set` has the types and the instructions of one instruction set. A *word* is a 32-bit lane of an integer vector.
//   Floats, Doubles, Words                 vectors of fp32, of fp64, and of words
//   kBytes                                 bytes of such a vector
//   kBlockBytes                            bytes of each source that are summed at a time (vector_sum.h)
//   load_floats(from), load_doubles(from), load_words(from)
//   store(to, Words)
//   add(a, b)                              two Floats, two Doubles or two Words
//   divide(a, b)                           two Floats or two Doubles
//   floats(float), doubles(double), words(uint32_t)  fill a vector with one value
//   as_words(Floats), as_floats(Words)     the same bits
//   bit_and(a, b), shift_left_16(a), shift_right_16(a)  on each word
//   canonical(Doubles)                     the bits; those of the canonical NaN where a lane is NaN
//   nan_or(Floats sums, Words bits)        `bits`; those of the canonical NaN where a lane of `sums` is NaN
//   interleave_16(even, odd)               the lower half of each word from `even`, the upper half from `odd`
//   load_float16(from), store_float16(to, Floats)    convert; store rounds, and makes NaN canonical
//   load_16(from), store_16(to, Words)     words that have 16 bits in memory
//   load_rounded(from)                     Floats from fp64 elements
#pragma once

#include "common/kernels/blocks.h"
#include "common/kernels/losses.h"
#include "common/kernels/norms.h"
#include "common/kernels/variant.h"
#include "common/kernels/vector_sum.h"

namespace gleaner::kernels {
namespace {

// The operations that fp32, fp16 and bf16 share, since all three are summed in fp32.
template <typename Set>
struct Float32Sums {
  using Vector = typename Set::Floats;
  static constexpr size_t kLanes = Set::kBytes / 4;
  static Vector add(Vector a, Vector b) { return Set::add(a, b); }
  static Vector divide(Vector a, Vector b) { return Set::divide(a, b); }
  static Vector broadcast(uint32_t value) { return Set::floats(static_cast<float>(value)); }
};

template <typename Set>
struct Float32 : Float32Sums<Set> {
  using Vector = typename Set::Floats;
  static constexpr size_t kElementBytes = 4;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return Set::load_floats(from); }
  static void store(std::byte* to, Vector sum) { Set::store(to, Set::nan_or(sum, Set::as_words(sum))); }
};

template <typename Set>
struct Float16 : Float32Sums<Set> {
  using Vector = typename Set::Floats;
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return Set::load_float16(from); }
  static void store(std::byte* to, Vector sum) { Set::store_float16(to, sum); }
};

// Rounds to nearest even. Returns the bits of bf16 in the upper half of each word, and any bits in the lower half. Adds
// just under half of the last bit that is kept, and one more where that bit is odd.
template <typename Set>
inline typename Set::Words round_to_bfloat16(typename Set::Floats sum) {
  const typename Set::Words bits = Set::as_words(sum);
  const typename Set::Words odd = Set::bit_and(Set::shift_right_16(bits), Set::words(1));
  return Set::nan_or(sum, Set::add(Set::add(bits, Set::words(0x7FFF)), odd));
}

// Two vectors at once: one has the elements at even indices, the other those at odd indices. A shift or a mask alone
// turns each vector into fp32.
template <typename Set>
struct BFloat16 {
  struct Vector {
    typename Set::Floats even;
    typename Set::Floats odd;
  };
  static constexpr size_t kLanes = Set::kBytes / 2;
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) {
    const typename Set::Words bits = Set::load_words(from);
    return {Set::as_floats(Set::shift_left_16(bits)), Set::as_floats(Set::bit_and(bits, Set::words(0xFFFF0000)))};
  }
  static Vector add(Vector a, Vector b) { return {Set::add(a.even, b.even), Set::add(a.odd, b.odd)}; }
  static Vector divide(Vector a, Vector b) { return {Set::divide(a.even, b.even), Set::divide(a.odd, b.odd)}; }
  static Vector broadcast(uint32_t value) {
    const typename Set::Floats all = Float32Sums<Set>::broadcast(value);
    return {all, all};
  }
  static void store(std::byte* to, Vector sum) {
    const typename Set::Words even = Set::shift_right_16(round_to_bfloat16<Set>(sum.even));
    Set::store(to, Set::interleave_16(even, round_to_bfloat16<Set>(sum.odd)));
  }
};

template <typename Set>
struct Float64 {
  using Vector = typename Set::Doubles;
  static constexpr size_t kLanes = Set::kBytes / 8;
  static constexpr size_t kElementBytes = 8;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return Set::load_doubles(from); }
  static Vector add(Vector a, Vector b) { return Set::add(a, b); }
  static Vector divide(Vector a, Vector b) { return Set::divide(a, b); }
  static Vector broadcast(uint32_t value) { return Set::doubles(value); }
  static void store(std::byte* to, Vector sum) { Set::store(to, Set::canonical(sum)); }
};

template <typename Set>
struct Int32 {
  using Vector = typename Set::Words;
  static constexpr size_t kLanes = Set::kBytes / 4;
  static constexpr size_t kElementBytes = 4;
  static constexpr size_t kResultBytes = kElementBytes;
  static Vector load(const std::byte* from) { return Set::load_words(from); }
  static Vector add(Vector a, Vector b) { return Set::add(a, b); }
  static Vector divide(Vector a, Vector) { return a; }  // int32 is never divided: kernels.h allows only the divisor 1
  static Vector broadcast(uint32_t value) { return Set::words(value); }
  static void store(std::byte* to, Vector sum) { Set::store(to, sum); }
};

// bf16 elements in order, for sums from or to fp32: their bits are the upper halves of fp32.
template <typename Set>
struct OrderedBFloat16 {
  static constexpr size_t kElementBytes = 2;
  static typename Set::Floats load(const std::byte* from) {
    return Set::as_floats(Set::shift_left_16(Set::load_16(from)));
  }
  static void store(std::byte* to, typename Set::Floats sum) {
    Set::store_16(to, Set::shift_right_16(round_to_bfloat16<Set>(sum)));
  }
};

// fp64 elements rounded to fp32, for norms.
template <typename Set>
struct RoundedFloat64 {
  static constexpr size_t kElementBytes = 8;
  static typename Set::Floats load(const std::byte* from) { return Set::load_rounded(from); }
};

// Sources of type From, summed in fp32 into a result of type To.
template <typename Set, template <typename> typename From, template <typename> typename To>
struct Converted : Float32Sums<Set> {
  using Vector = typename Set::Floats;
  static constexpr size_t kElementBytes = From<Set>::kElementBytes;
  static constexpr size_t kResultBytes = To<Set>::kElementBytes;
  static Vector load(const std::byte* from) { return From<Set>::load(from); }
  static void store(std::byte* to, Vector sum) { To<Set>::store(to, sum); }
};

template <typename Set>
constexpr Variant vector_variant(const char* name) {
  return {name,
          vector_sum<Float32<Set>, Set::kBlockBytes>,
          vector_sum<Float64<Set>, Set::kBlockBytes>,
          vector_sum<Float16<Set>, Set::kBlockBytes>,
          vector_sum<BFloat16<Set>, Set::kBlockBytes>,
          vector_sum<Int32<Set>, Set::kBlockBytes>,
          vector_sum<Converted<Set, Float16, Float32>, Set::kBlockBytes>,
          vector_sum<Converted<Set, OrderedBFloat16, Float32>, Set::kBlockBytes>,
          vector_sum<Converted<Set, Float32, Float16>, Set::kBlockBytes>,
          vector_sum<Converted<Set, Float32, OrderedBFloat16>, Set::kBlockBytes>,
          count_losses,
          {.float32 = l1_norms<Set, Float32>,
           .float64 = l1_norms<Set, RoundedFloat64>,
           .float16 = l1_norms<Set, Float16>,
           .bfloat16 = l1_norms<Set, OrderedBFloat16>},
          make_block_table()};
}

}  // namespace
}  // namespace gleaner::kernels
