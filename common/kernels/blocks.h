// Encodes, decodes and sums blocks (common/base/data_type.h). Internal to this folder, and included as variant.h says:
// each translation unit has its own copy, which the compiler vectorizes for its instruction set. The loops are written
// so that it can, and so that the bits do not depend on how it does.
//
// Each struct describes a block type: how its bytes become kBlockValues values of fp32 (load), how they are added to
// others (add), and how values become its bytes (store). A `key` makes random numbers; types without them ignore it.
// Sums are made in fp32, source by source in the given order, and the quotient is stored once. A block that has a scale
// becomes a block of NaNs if one of its values is not finite.
//
// Sources: BytePS's gradient compression (onebit, topk, randomk, dithering); QSGD (Alistarh et al., 2017) for dithering
// with a scale per block; Karimireddy et al., "Error feedback fixes SignSGD" (2019), for signs with the mean magnitude.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/base/data_type.h"
#include "common/kernels/variant.h"

namespace gleaner::kernels {
namespace {

constexpr uint32_t kMagnitude = 0x7FFFFFFF;
constexpr uint32_t kInfinityBits = 0x7F800000;
constexpr uint32_t kNanBits = 0x7FC00000;
// Blocks whose largest magnitude is below 2^-100 become zeros, because the reciprocal of their scale would be infinite.
constexpr uint32_t kLeastBits = (127 - 100) << 23;

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline float load_float(const std::byte* from) {
  float value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

inline void store_float(std::byte* to, float value) { std::memcpy(to, &value, sizeof(value)); }

// Mixes the bits of a number: C. Wellons' lowbias32.
inline uint32_t mixed(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7FEB352D;
  x = (x ^ (x >> 15)) * 0x846CA68B;
  return x ^ (x >> 16);
}

// Returns the bits of the largest magnitude. Those of infinity and NaN are above those of finite values.
inline uint32_t largest_magnitude(const float* values) {
  uint32_t largest = 0;
  for (uint32_t i = 0; i < kBlockValues; ++i) {
    const uint32_t bits = bits_of(values[i]) & kMagnitude;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

struct Float32s {
  static constexpr size_t kBytes = size_of(kFloat32Block);
  static void load(const std::byte* block, uint32_t, float* values) { std::memcpy(values, block, kBytes); }
  static void add(const std::byte* block, float* sums) {
    for (uint32_t i = 0; i < kBlockValues; ++i) sums[i] += load_float(block + i * sizeof(float));
  }
  static void store(const float* sums, uint32_t, uint32_t, std::byte* block) {
    for (uint32_t i = 0; i < kBlockValues; ++i) {
      const float canonical = sums[i] != sums[i] ? float_of(kNanBits) : sums[i];
      store_float(block + i * sizeof(float), canonical);
    }
  }
};

// value = scale * q, -127 <= q <= 127, rounded to nearest even. scale = largest magnitude / 127.
struct Int8s {
  static constexpr size_t kBytes = size_of(kInt8Block);
  static int32_t code(const std::byte* block, uint32_t i) {
    return static_cast<int8_t>(static_cast<uint8_t>(block[sizeof(float) + i]));
  }
  static void load(const std::byte* block, uint32_t, float* values) {
    const float scale = load_float(block);
    for (uint32_t i = 0; i < kBlockValues; ++i) values[i] = scale * static_cast<float>(code(block, i));
  }
  static void add(const std::byte* block, float* sums) {
    const float scale = load_float(block);
    for (uint32_t i = 0; i < kBlockValues; ++i) sums[i] += scale * static_cast<float>(code(block, i));
  }
  static void store(const float* values, uint32_t, uint32_t, std::byte* block) {
    const uint32_t largest = largest_magnitude(values);
    std::byte* const codes = block + sizeof(float);
    if (largest < kLeastBits || largest >= kInfinityBits) {
      store_float(block, float_of(largest < kLeastBits ? 0 : kNanBits));
      return void(std::memset(codes, largest < kLeastBits ? 0 : 1, kBlockValues));
    }
    // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
    constexpr float kRounder = 0x1.8p23F;
    store_float(block, float_of(largest) / 127);
    const float inverse = 127 / float_of(largest);
    for (uint32_t i = 0; i < kBlockValues; ++i) {
      codes[i] = static_cast<std::byte>(bits_of(values[i] * inverse + kRounder));
    }
  }
};

// value = scale * q, -7 <= q <= 7, rounded up or down at random, so that the expectation is exact. scale = largest
// magnitude / 7. A byte has the codes q + 8 of values i (low bits) and i + kBlockValues / 2.
struct Int4s {
  static constexpr size_t kBytes = size_of(kInt4Block);
  static constexpr uint32_t kHalf = kBlockValues / 2;
  static float low(std::byte both) { return static_cast<float>(static_cast<int32_t>(both & std::byte{15}) - 8); }
  static float high(std::byte both) { return static_cast<float>(static_cast<int32_t>(both >> 4) - 8); }
  static void load(const std::byte* block, uint32_t, float* values) {
    const float scale = load_float(block);
    const std::byte* const codes = block + sizeof(float);
    for (uint32_t i = 0; i < kHalf; ++i) values[i] = scale * low(codes[i]);
    for (uint32_t i = 0; i < kHalf; ++i) values[i + kHalf] = scale * high(codes[i]);
  }
  static void add(const std::byte* block, float* sums) {
    const float scale = load_float(block);
    const std::byte* const codes = block + sizeof(float);
    for (uint32_t i = 0; i < kHalf; ++i) sums[i] += scale * low(codes[i]);
    for (uint32_t i = 0; i < kHalf; ++i) sums[i + kHalf] += scale * high(codes[i]);
  }
  static int32_t code(float scaled, uint32_t random) {
    const float uniform = static_cast<float>(static_cast<int32_t>(random >> 8)) * 0x1p-24F;
    const auto code = static_cast<int32_t>(scaled + uniform + 8);  // is positive, so this rounds down
    const int32_t at_least_1 = code < 1 ? 1 : code;
    return at_least_1 > 15 ? 15 : at_least_1;
  }
  static void store(const float* values, uint32_t, uint32_t key, std::byte* block) {
    const uint32_t largest = largest_magnitude(values);
    std::byte* const codes = block + sizeof(float);
    if (largest < kLeastBits || largest >= kInfinityBits) {
      store_float(block, float_of(largest < kLeastBits ? 0 : kNanBits));
      return void(std::memset(codes, 0x99, kHalf));
    }
    store_float(block, float_of(largest) / 7);
    const float inverse = 7 / float_of(largest);
    const uint32_t keyed = mixed(key ^ largest);
    for (uint32_t i = 0; i < kHalf; ++i) {
      const int32_t first = code(values[i] * inverse, mixed(keyed + i));
      const int32_t second = code(values[i + kHalf] * inverse, mixed(keyed + i + kHalf));
      codes[i] = static_cast<std::byte>(first | second << 4);
    }
  }
};

// value = scale, or -scale. scale = mean magnitude. Bit b of byte i: whether value i + b * kBlockValues / 8 is
// negative.
struct Signs {
  static constexpr size_t kBytes = size_of(kSignBlock);
  static constexpr uint32_t kEighth = kBlockValues / 8;
  static float value(const std::byte* block, uint32_t scale, uint32_t i, uint32_t bit) {
    return float_of(scale ^ (static_cast<uint32_t>(block[sizeof(float) + i]) >> bit << 31));
  }
  static void load(const std::byte* block, uint32_t, float* values) {
    const uint32_t scale = bits_of(load_float(block));
    for (uint32_t bit = 0; bit < 8; ++bit) {
      for (uint32_t i = 0; i < kEighth; ++i) values[bit * kEighth + i] = value(block, scale, i, bit);
    }
  }
  static void add(const std::byte* block, float* sums) {
    const uint32_t scale = bits_of(load_float(block));
    for (uint32_t bit = 0; bit < 8; ++bit) {
      for (uint32_t i = 0; i < kEighth; ++i) sums[bit * kEighth + i] += value(block, scale, i, bit);
    }
  }
  // `count`: values of the block that the tensor has; the others are zero.
  static void store(const float* values, uint32_t count, uint32_t, std::byte* block) {
    constexpr uint32_t kLanes = 16;
    float lanes[kLanes] = {};
    for (uint32_t i = 0; i < kBlockValues; i += kLanes) {
      for (uint32_t lane = 0; lane < kLanes; ++lane) lanes[lane] += float_of(bits_of(values[i + lane]) & kMagnitude);
    }
    float sum = 0;
    for (const float lane : lanes) sum += lane;
    const bool is_finite = bits_of(sum) < kInfinityBits;
    store_float(block, is_finite ? sum / static_cast<float>(count) : float_of(kNanBits));
    std::byte* const signs = block + sizeof(float);
    for (uint32_t i = 0; i < kEighth; ++i) {
      uint32_t byte = 0;
      for (uint32_t bit = 0; bit < 8; ++bit) byte |= bits_of(values[bit * kEighth + i]) >> 31 << bit;
      signs[i] = static_cast<std::byte>(byte);
    }
  }
};

// The k values of the largest magnitude, of equal ones the first: their indexes in ascending order, then the values.
template <uint32_t k>
struct Top {
  static constexpr size_t kBytes = size_of(top_k(k));
  static uint32_t index(const std::byte* block, uint32_t i) {
    uint16_t index;
    std::memcpy(&index, block + i * sizeof(index), sizeof(index));
    return index % kBlockValues;
  }
  static const std::byte* kept(const std::byte* block, uint32_t i) {
    return block + k * sizeof(uint16_t) + i * sizeof(float);
  }
  static void load(const std::byte* block, uint32_t, float* values) {
    std::memset(values, 0, kBlockValues * sizeof(float));
    for (uint32_t i = 0; i < k; ++i) values[index(block, i)] = load_float(kept(block, i));
  }
  static void add(const std::byte* block, float* sums) {
    for (uint32_t i = 0; i < k; ++i) sums[index(block, i)] += load_float(kept(block, i));
  }
  // Returns the magnitude as a number of 31 bits, which compares like it.
  static int32_t magnitude(const float* values, uint32_t i) {
    return static_cast<int32_t>(bits_of(values[i]) & kMagnitude);
  }
  // The block is a matrix with kGroups columns, the groups. The k-th largest of the maxima of groups is a bound for the
  // values to keep: at least k values reach it, and they are in the groups whose maxima do. So few values are
  // candidates.
  static constexpr uint32_t kGroups = k <= 16 ? 64 : k == 32 ? 128 : 256;

  static uint32_t count_above(const int32_t* magnitudes, uint32_t size, int32_t bound) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < size; ++i) count += magnitudes[i] > bound ? 1 : 0;
    return count;
  }
  // Finds, bit by bit, the greatest number without bits below `last` that k of `size` magnitudes reach. Ends as soon as
  // only k magnitudes reach a smaller number. `least`: has the bits above `first`. Returns how many magnitudes reach
  // it.
  static uint32_t find_least(const int32_t* magnitudes, uint32_t size, int32_t first, int32_t last, int32_t& least) {
    uint32_t count = size;
    for (int32_t bit = first; bit >= last && count > k; bit >>= 1) {
      const uint32_t reached = count_above(magnitudes, size, (least | bit) - 1);
      least |= reached >= k ? bit : 0;
      count = reached >= k ? reached : count;
    }
    return count;
  }
  static int32_t bound_of(const float* values, int32_t* maxima) {
    for (uint32_t group = 0; group < kGroups; ++group) maxima[group] = magnitude(values, group);
    for (uint32_t row = kGroups; row < kBlockValues; row += kGroups) {
      for (uint32_t group = 0; group < kGroups; ++group) {
        const int32_t own = magnitude(values, row + group);
        maxima[group] = own > maxima[group] ? own : maxima[group];
      }
    }
    int32_t bound = 0;
    find_least(maxima, kGroups, 1 << 30, 1 << 18, bound);  // a few bits of the fraction are enough
    return bound;
  }
  static void store(const float* values, uint32_t, uint32_t, std::byte* block) {
    alignas(64) int32_t maxima[kGroups];
    const int32_t bound = bound_of(values, maxima);
    uint16_t groups[kGroups];
    uint32_t chosen = 0;
    for (uint32_t group = 0; group < kGroups; ++group) {
      groups[chosen] = static_cast<uint16_t>(group);
      chosen += maxima[group] >= bound ? 1 : 0;
    }
    alignas(64) int32_t magnitudes[kBlockValues];
    uint16_t candidates[kBlockValues];
    uint32_t size = 0;
    for (uint32_t row = 0; row < kBlockValues; row += kGroups) {
      for (uint32_t i = 0; i < chosen; ++i) {
        candidates[size] = static_cast<uint16_t>(row + groups[i]);
        magnitudes[size] = magnitude(values, candidates[size]);
        size += magnitudes[size] >= bound ? 1 : 0;
      }
    }
    int32_t least = 0;
    const uint32_t count = find_least(magnitudes, size, 1 << 30, 1, least);
    uint32_t ties = count > k ? k - count_above(magnitudes, size, least) : k;
    uint16_t indexes[k + 1];
    uint32_t filled = 0;
    for (uint32_t i = 0; i < size; ++i) {
      indexes[filled] = candidates[i];
      const bool is_tie = magnitudes[i] == least;
      filled += magnitudes[i] > least || (is_tie && ties > 0) ? 1 : 0;
      ties -= is_tie && ties > 0 ? 1 : 0;
    }
    std::memcpy(block, indexes, k * sizeof(uint16_t));
    for (uint32_t i = 0; i < k; ++i) {
      const float value = values[indexes[i]];
      store_float(block + k * sizeof(uint16_t) + i * sizeof(float), value != value ? float_of(kNanBits) : value);
    }
  }
};

// The values of k places, one at a random place of each k-th part of the block. If some value of the block is not
// finite, the first place has NaN, so that no rank takes the result for a good one.
template <uint32_t k>
struct Random {
  static constexpr size_t kBytes = size_of(random_k(k));
  static uint32_t index(uint32_t key, uint32_t i) {
    constexpr uint32_t kPart = kBlockValues / k;
    return i * kPart + mixed(key + i) % kPart;
  }
  static void store(const float* values, uint32_t, uint32_t key, std::byte* block) {
    for (uint32_t i = 0; i < k; ++i) store_float(block + i * sizeof(float), values[index(key, i)]);
    if (largest_magnitude(values) >= kInfinityBits) store_float(block, float_of(kNanBits));
  }
  static void load(const std::byte* block, uint32_t key, float* values) {
    std::memset(values, 0, kBlockValues * sizeof(float));
    for (uint32_t i = 0; i < k; ++i) values[index(key, i)] = load_float(block + i * sizeof(float));
  }
};

// Sums blocks of type From into blocks of type To.
template <typename From, typename To>
void sum_blocks(const std::byte* const* sources, size_t count, std::byte* result, size_t blocks, uint32_t divisor) {
  alignas(64) float sums[kBlockValues];
  for (size_t block = 0; block < blocks; ++block) {
    From::load(sources[0] + block * From::kBytes, 0, sums);
    for (size_t source = 1; source < count; ++source) From::add(sources[source] + block * From::kBytes, sums);
    if (divisor != 1) {
      for (float& sum : sums) sum /= static_cast<float>(divisor);
    }
    To::store(sums, kBlockValues, 0, result + block * To::kBytes);
  }
}

// Returns the key of a block of a tensor.
inline uint32_t key_of(uint32_t key, size_t block) { return mixed(key ^ mixed(static_cast<uint32_t>(block))); }

inline float finite_or_zero(float value) { return (bits_of(value) & kMagnitude) < kInfinityBits ? value : 0.0F; }

// Writes to `values` the `count` values of a block from number `first` on, with momentum and residual, and then zeros.
inline void correct(const BlockSource& source, size_t first, uint32_t count, float* values) {
  std::memcpy(values, source.values + first * sizeof(float), count * sizeof(float));
  std::memset(values + count, 0, (kBlockValues - count) * sizeof(float));
  if (source.momentum != nullptr) {
    float* const momentum = source.momentum + first;
    for (uint32_t i = 0; i < count; ++i) {
      momentum[i] = finite_or_zero(source.factor * momentum[i] + values[i]);
      values[i] += source.factor * momentum[i];
    }
  }
  if (source.residual != nullptr) {
    for (uint32_t i = 0; i < count; ++i) values[i] += source.residual[first + i];
  }
}

template <typename Type>
void encode(const BlockSource& source, std::byte* result) {
  alignas(64) float values[kBlockValues];
  alignas(64) float sent[kBlockValues];
  for (size_t first = 0; first < source.count; first += kBlockValues, result += Type::kBytes) {
    const size_t left = source.count - first;
    const auto count = static_cast<uint32_t>(left < kBlockValues ? left : kBlockValues);
    const uint32_t key = key_of(source.key, source.first_block + first / kBlockValues);
    correct(source, first, count, values);
    Type::store(values, count, key, result);
    if (source.residual == nullptr) continue;
    Type::load(result, key, sent);
    for (uint32_t i = 0; i < count; ++i) source.residual[first + i] = finite_or_zero(values[i] - sent[i]);
  }
}

template <typename Type>
void decode(const BlockTarget& target, const std::byte* blocks) {
  alignas(64) float values[kBlockValues];
  for (size_t first = 0; first < target.count; first += kBlockValues, blocks += Type::kBytes) {
    const size_t left = target.count - first;
    Type::load(blocks, key_of(target.key, target.first_block + first / kBlockValues), values);
    std::memcpy(target.values + first * sizeof(float), values,
                (left < kBlockValues ? left : kBlockValues) * sizeof(float));
  }
}

// Functions for contributions of type From and results of type To.
template <typename From, typename To = From>
constexpr BlockFunctions functions() {
  return {encode<From>, decode<From>, sum_blocks<From, To>, sum_blocks<From, Float32s>, sum_blocks<Float32s, To>};
}
template <uint32_t k>
constexpr BlockFunctions random_functions() {
  return {encode<Random<k>>, decode<Random<k>>, nullptr, nullptr, nullptr};  // their sums are those of fp32
}

constexpr BlockTable make_block_table() {
  return {.int8 = functions<Int8s>(),
          .int4 = functions<Int4s>(),
          .sign = functions<Signs, Int8s>(),
          .top = {functions<Top<1>>(), functions<Top<2>>(), functions<Top<4>>(), functions<Top<8>>(),
                  functions<Top<16>>(), functions<Top<32>>(), functions<Top<64>>(), functions<Top<128>>()},
          .random = {random_functions<1>(), random_functions<2>(), random_functions<4>(), random_functions<8>(),
                     random_functions<16>(), random_functions<32>(), random_functions<64>(), random_functions<128>()}};
}

}  // namespace
}  // namespace gleaner::kernels
