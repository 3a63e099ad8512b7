// The oracle: computes sums and norms literally as kernels.h defines them, one element at a time.
#include <cmath>
#include <cstring>

#include "common/kernels/blocks.h"
#include "common/kernels/float_formats.h"
#include "common/kernels/losses.h"
#include "common/kernels/variant.h"

namespace gleaner::kernels {
namespace {

// Each struct describes a data type: how an element is stored, the type in which elements are summed, and the
// conversions between the two.
struct Float32 {
  using Stored = uint32_t;
  using Accumulator = float;
  static float load(uint32_t bits) { return std::bit_cast<float>(bits); }
  static uint32_t round(float sum) { return sum != sum ? kNanFloat32 : std::bit_cast<uint32_t>(sum); }
};

struct Float64 {
  using Stored = uint64_t;
  using Accumulator = double;
  static double load(uint64_t bits) { return std::bit_cast<double>(bits); }
  static uint64_t round(double sum) { return sum != sum ? kNanFloat64 : std::bit_cast<uint64_t>(sum); }
};

struct Float16 {
  using Stored = uint16_t;
  using Accumulator = float;
  static float load(uint16_t bits) { return float16_to_float32(bits); }
  static uint16_t round(float sum) { return float32_to_float16(sum); }
};

struct BFloat16 {
  using Stored = uint16_t;
  using Accumulator = float;
  static float load(uint16_t bits) { return bfloat16_to_float32(bits); }
  static uint16_t round(float sum) { return float32_to_bfloat16(sum); }
};

struct Int32 {
  using Stored = uint32_t;
  using Accumulator = uint32_t;  // unsigned, because it wraps around
  static uint32_t load(uint32_t value) { return value; }
  static uint32_t round(uint32_t sum) { return sum; }
};

template <typename Type>
typename Type::Accumulator load_element(const std::byte* source, size_t element) {
  typename Type::Stored stored;
  std::memcpy(&stored, source + element * sizeof(stored), sizeof(stored));
  return Type::load(stored);
}

// Sums elements of type From into a result of type To, which has the same accumulator.
template <typename From, typename To = From>
void sum(const std::byte* const* sources, size_t count, std::byte* result, size_t elements, uint32_t divisor) {
  for (size_t element = 0; element < elements; ++element) {
    auto accumulator = load_element<From>(sources[0], element);
    for (size_t source = 1; source < count; ++source) accumulator += load_element<From>(sources[source], element);
    if (divisor != 1) accumulator /= static_cast<typename From::Accumulator>(divisor);
    const typename To::Stored stored = To::round(accumulator);
    std::memcpy(result + element * sizeof(stored), &stored, sizeof(stored));
  }
}

// Returns sum `index` of the row after `halvings` halvings. `widths`: by number of halvings, how many sums are left.
template <typename Type>
float halved(const std::byte* row, const size_t* widths, size_t halvings, size_t index) {
  if (halvings == 0) return std::fabs(static_cast<float>(load_element<Type>(row, index)));
  const float sum = halved<Type>(row, widths, halvings - 1, index);
  const size_t other = index + widths[halvings];
  return other < widths[halvings - 1] ? sum + halved<Type>(row, widths, halvings - 1, other) : sum;
}

template <typename Type>
void l1_norms(const std::byte* values, size_t rows, size_t columns, float* norms) {
  size_t widths[8 * sizeof(size_t) + 1] = {columns};
  size_t halvings = 0;
  for (; widths[halvings] > 1; ++halvings) widths[halvings + 1] = widths[halvings] - widths[halvings] / 2;
  for (size_t row = 0; row < rows; ++row) {
    const std::byte* const from = values + row * columns * sizeof(typename Type::Stored);
    const uint32_t norm = Float32::round(columns == 0 ? 0 : halved<Type>(from, widths, halvings, 0));
    std::memcpy(norms + row, &norm, sizeof(norm));
  }
}

}  // namespace

const Variant kScalar = {"scalar",
                         sum<Float32>,
                         sum<Float64>,
                         sum<Float16>,
                         sum<BFloat16>,
                         sum<Int32>,
                         sum<Float16, Float32>,
                         sum<BFloat16, Float32>,
                         sum<Float32, Float16>,
                         sum<Float32, BFloat16>,
                         count_losses,
                         {l1_norms<Float32>, l1_norms<Float64>, l1_norms<Float16>, l1_norms<BFloat16>},
                         make_block_table()};

}  // namespace gleaner::kernels
