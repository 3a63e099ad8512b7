// The L1 norms of rows, which Kernels::l1_norms() defines, over the instructions of one set (vector_types.h). Internal
// to this folder, and included as variant.h says.
//
// After h halvings a sum has 2^h columns, which lie far apart. RowNorm makes neighbouring sums with kFused halvings at
// once in registers, so it reads each row once and needs no memory of the size of a row. Example: 32,000 columns have
// 4,000 sums after three halvings. A vector of these sums has the vectors of eight places in the row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gleaner::kernels {
namespace {

// `Type` loads a vector of elements as Set::Floats.
template <typename Set, typename Type>
class RowNorm {
 public:
  explicit RowNorm(size_t columns) {
    widths_[0] = columns;
    for (; columns > kMostSums && (halvings_ < kFused || widths_[halvings_] > kMostSums); ++halvings_) {
      widths_[halvings_ + 1] = widths_[halvings_] - widths_[halvings_] / 2;
    }
  }

  float operator()(const std::byte* row) const {
    alignas(64) float sums[kMostSums];
    size_t width = widths_[halvings_];
    for (size_t first = 0; first < width; first += kBlock) {
      add_halves(row, halvings_, first, width - first < kBlock ? width - first : kBlock, sums + first);
    }
    if (width == 0) return 0;
    while (width > 1) {
      const size_t half = width - width / 2;
      for (size_t i = 0; i < width - half; ++i) sums[i] += sums[half + i];
      width = half;
    }
    return sums[0] != sums[0] ? __builtin_nanf("") : sums[0];
  }

 private:
  static constexpr size_t kMostSums = 4096;  // 16 KiB, half of a small first-level cache
  static constexpr size_t kBlock = 128;      // is a multiple of kLanes
  static constexpr size_t kFused = 3;        // eight places in a row, as many as processors prefetch well
  static constexpr size_t kLanes = Set::kBytes / sizeof(float);
  using Floats = typename Set::Floats;

  // Writes `count` sums, at most kBlock, of the row after some halvings, from number `first` on. Overwrites a block.
  void add_halves(const std::byte* row, size_t halvings, size_t first, size_t count, float* sums) const {
    if (halvings == 0) return load(row + first * Type::kElementBytes, count, sums);
    if (halvings == kFused) {
      // The last kFused sums may lack columns.
      for (; count >= kLanes && first + kLanes + kFused <= widths_[kFused]; first += kLanes, count -= kLanes) {
        store(sums, fused<kFused>(row + first * Type::kElementBytes));
        sums += kLanes;
      }
    }
    add_halves(row, halvings - 1, first, count, sums);
    const size_t other = first + widths_[halvings];
    const size_t others = widths_[halvings - 1] - other;  // the last sum of an odd number has no other
    alignas(64) float added[kBlock];
    add_halves(row, halvings - 1, other, others < count ? others : count, added);
    for (size_t i = 0; i < (others < count ? others : count); ++i) sums[i] += added[i];
  }

  // Returns a vector of sums after kHalvings halvings, whose first column is at `from`.
  template <size_t kHalvings>
  Floats fused(const std::byte* from) const {
    if constexpr (kHalvings == 0) {
      return magnitudes(from);
    } else {
      const Floats sum = fused<kHalvings - 1>(from);
      return Set::add(sum, fused<kHalvings - 1>(from + widths_[kHalvings] * Type::kElementBytes));
    }
  }

  static void load(const std::byte* from, size_t count, float* sums) {
    constexpr size_t kBytes = kLanes * Type::kElementBytes;
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes, from += kBytes) {
      store(sums + i, magnitudes(from));
    }
    if (i == count) return;
    std::byte padded[kBytes] = {};
    std::memcpy(padded, from, (count - i) * Type::kElementBytes);
    store(sums + i, magnitudes(padded));
  }

  static Floats magnitudes(const std::byte* from) {
    return Set::as_floats(Set::bit_and(Set::as_words(Type::load(from)), Set::words(0x7FFFFFFF)));
  }
  static void store(float* to, Floats sums) { Set::store(reinterpret_cast<std::byte*>(to), Set::as_words(sums)); }

  size_t widths_[8 * sizeof(size_t)];  // by number of halvings: sums that are left
  size_t halvings_ = 0;                // until at most kMostSums sums are left
};

template <typename Set, template <typename> typename Type>
void l1_norms(const std::byte* values, size_t rows, size_t columns, float* norms) {
  const RowNorm<Set, Type<Set>> norm(columns);
  for (size_t row = 0; row < rows; ++row) norms[row] = norm(values + row * columns * Type<Set>::kElementBytes);
}

}  // namespace
}  // namespace gleaner::kernels
