// Tests the L1 norms of every variant against the definition in kernels.h.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <xmmintrin.h>

#include "common/kernels/float_formats.h"
#include "common/kernels/kernels.h"
#include "tests/unit/kernels/hard_values.h"

namespace gleaner::kernels {
namespace {

float magnitude(DataType type, const std::byte* element) {
  const auto load = [element]<typename T>(T value) {
    std::memcpy(&value, element, sizeof(value));
    return value;
  };
  if (type == DataType::kFloat16) return std::fabs(float16_to_float32(load(uint16_t{})));
  if (type == DataType::kBFloat16) return std::fabs(bfloat16_to_float32(load(uint16_t{})));
  return std::fabs(type == DataType::kFloat32 ? load(float{}) : static_cast<float>(load(double{})));
}

uint32_t norm_of(DataType type, const std::byte* row, size_t columns) {
  std::vector<float> sums;
  for (size_t i = 0; i < columns; ++i) sums.push_back(magnitude(type, row + i * size_of(type)));
  while (sums.size() > 1) {
    const size_t half = (sums.size() + 1) / 2;
    for (size_t i = half; i < sums.size(); ++i) sums[i - half] += sums[i];
    sums.resize(half);
  }
  const float norm = sums.empty() ? 0 : sums[0];
  return std::isnan(norm) ? 0x7FC00000 : std::bit_cast<uint32_t>(norm);
}

class Norms : public ::testing::TestWithParam<DataType> {
 protected:
  // Compares the norms of rows that begin at any byte with those of the definition.
  void expect_norms(const std::vector<std::byte>& values, size_t rows, size_t columns) const {
    for (const absl::string_view name : available_variants()) {
      std::vector<float> norms(rows);
      Kernels::choose(name)->l1_norms(GetParam(), values.data() + 1, rows, columns, norms.data());
      for (size_t row = 0; row < rows; ++row) {
        const std::byte* const from = values.data() + 1 + row * columns * size_of(GetParam());
        ASSERT_EQ(std::bit_cast<uint32_t>(norms[row]), norm_of(GetParam(), from, columns)) << name << " " << columns;
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, Norms,
                         ::testing::Values(DataType::kFloat32, DataType::kFloat64, DataType::kFloat16,
                                           DataType::kBFloat16),
                         [](const auto& each) { return std::string(name_of(each.param)); });

// Rows of moderate values have norms whose last bits tell the order, and others are infinite or NaN.
TEST_P(Norms, AddByHalves) {
  std::mt19937_64 random(1);
  for (const size_t columns : {0, 1, 2, 3, 31, 127, 1000, 4096, 4097, 4099, 8191, 32'000, 32'767, 32'769, 70'001}) {
    constexpr size_t kRows = 3;
    std::vector<std::byte> values(1 + kRows * columns * size_of(GetParam()));
    fill(GetParam(), std::span(values).subspan(1), random);
    expect_norms(values, kRows, columns);
    // The upper byte of an element has the upper bits of its exponent.
    for (size_t i = size_of(GetParam()); i < values.size(); i += size_of(GetParam())) {
      values[i] = (values[i] & std::byte{0x83}) | std::byte{0x38};
    }
    expect_norms(values, kRows, columns);
  }
}

TEST(NormsOfRows, IgnoreTheCallersFloatingPointModes) {
  const std::vector<float> values(5000, std::numeric_limits<float>::denorm_min());
  for (const absl::string_view name : available_variants()) {
    float norm = 0;
    const uint32_t before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zero
    Kernels::choose(name)->l1_norms(DataType::kFloat32, reinterpret_cast<const std::byte*>(values.data()), 1,
                                    values.size(), &norm);
    _mm_setcsr(before);
    EXPECT_EQ(std::bit_cast<uint32_t>(norm), 5000u) << name;
  }
}

}  // namespace
}  // namespace gleaner::kernels
