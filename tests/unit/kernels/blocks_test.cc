// Tests of blocks: their values, and that every variant has the bits of the scalar one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "common/base/accumulator.h"
#include "common/kernels/kernels.h"
#include "tests/unit/kernels/hard_values.h"

namespace gleaner::kernels {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const std::vector<DataType> kTypes = {kInt8Block, kInt4Block,  kSignBlock,   top_k(1),     top_k(8),
                                      top_k(128), random_k(1), random_k(16), random_k(128)};

std::vector<std::byte> blocks_for(DataType type, size_t values) {
  return std::vector<std::byte>((values + kBlockValues - 1) / kBlockValues * size_of(type));
}

struct State {
  std::vector<float> residual;
  std::vector<float> momentum;
};

std::vector<std::byte> encoded(const Kernels& kernels, DataType type, const std::vector<float>& values,
                               uint32_t key = 7, State* state = nullptr, float factor = 0.5F) {
  std::vector<std::byte> blocks = blocks_for(type, values.size());
  float* const residual = state == nullptr ? nullptr : state->residual.data();
  float* const momentum = state == nullptr || state->momentum.empty() ? nullptr : state->momentum.data();
  kernels.encode(type, {std::as_bytes(std::span(values)).data(), values.size(), residual, momentum, factor, key, 3},
                 blocks.data());
  return blocks;
}

std::vector<float> decoded(const Kernels& kernels, DataType type, const std::vector<std::byte>& blocks, size_t values,
                           uint32_t key = 7) {
  std::vector<float> result(values, kNan);
  kernels.decode(type, blocks.data(), {std::as_writable_bytes(std::span(result)).data(), values, key, 3});
  return result;
}

std::vector<float> normal_values(size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Returns values of which some blocks have none that is not finite.
std::vector<float> hard_floats(size_t count, std::mt19937_64& random) {
  std::vector<float> values = normal_values(count, static_cast<unsigned>(random()));
  const MutableBytes bytes = std::as_writable_bytes(std::span(values));
  fill(DataType::kFloat32, bytes.first(bytes.size() / 3 / sizeof(float) * sizeof(float)), random);
  return values;
}

const Kernels& oracle() {
  static const Kernels kernels = *Kernels::choose("scalar");
  return kernels;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

class Blocks : public ::testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(All, Blocks, ::testing::ValuesIn(kTypes), [](const auto& each) {
  std::string name(name_of(each.param));
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST_P(Blocks, EveryVariantEncodesAndDecodesAsTheScalarOne) {
  std::mt19937_64 random(3);
  for (const absl::string_view name : available_variants()) {
    const Kernels kernels = *Kernels::choose(name);
    for (const size_t count : {1, 1023, 1024, 10'000}) {
      State state{std::vector<float>(count), std::vector<float>(count)}, expected_state = state;
      for (uint32_t key = 0; key < 3; ++key) {
        const std::vector<float> values = hard_floats(count, random);
        const auto expected = encoded(oracle(), GetParam(), values, key, &expected_state);
        ASSERT_TRUE(same_bits(encoded(kernels, GetParam(), values, key, &state), expected)) << name;
        ASSERT_TRUE(same_bits(state.residual, expected_state.residual)) << name;
        ASSERT_TRUE(same_bits(state.momentum, expected_state.momentum)) << name;
        ASSERT_TRUE(same_bits(decoded(kernels, GetParam(), expected, count, key),
                              decoded(oracle(), GetParam(), expected, count, key)));
      }
    }
  }
}

TEST_P(Blocks, EveryVariantSumsAsTheScalarOne) {
  std::mt19937_64 random(4);
  constexpr size_t kCount = 5 * kBlockValues;
  const DataType to = GetParam() == kSignBlock ? kInt8Block : GetParam();
  for (const absl::string_view name : available_variants()) {
    const Kernels kernels = *Kernels::choose(name);
    for (const uint32_t divisor : {1, 3}) {
      std::vector<std::vector<std::byte>> blocks;
      std::vector<const std::byte*> sources;
      for (int source = 0; source < 3; ++source) {
        blocks.push_back(encoded(oracle(), GetParam(), hard_floats(kCount, random)));
        sources.push_back(blocks.back().data());
      }
      const auto sum = [&](const Kernels& by, DataType type) {
        std::vector<std::byte> result = blocks_for(type, kCount);
        by.sum(GetParam(), type, sources, result.data(), kCount / kBlockValues, divisor);
        return result;
      };
      EXPECT_TRUE(same_bits(sum(kernels, to), sum(oracle(), to))) << name;
      const DataType partial = accumulator_of(GetParam());
      const std::vector<std::byte> partials = sum(oracle(), partial);
      EXPECT_TRUE(same_bits(sum(kernels, partial), partials)) << name;
      // A partial sum that becomes a result has the bits of the result.
      std::vector<std::byte> result = blocks_for(to, kCount);
      const std::byte* const from = partials.data();
      kernels.sum(partial, to, {&from, 1}, result.data(), kCount / kBlockValues, 1);
      EXPECT_TRUE(same_bits(result, sum(oracle(), to))) << name;
    }
  }
}

// The sum of all that was sent, and of the last residual, is the sum of all values.
TEST_P(Blocks, ResidualsAreWhatBlocksLack) {
  constexpr size_t kCount = 1500;
  State state{std::vector<float>(kCount), {}};
  std::vector<double> values_so_far(kCount), sent_so_far(kCount);
  for (uint32_t key = 0; key < 50; ++key) {
    const std::vector<float> values = normal_values(kCount, key);
    const auto blocks = encoded(oracle(), GetParam(), values, key, &state);
    const std::vector<float> sent = decoded(oracle(), GetParam(), blocks, kCount, key);
    for (size_t i = 0; i < kCount; ++i) values_so_far[i] += values[i], sent_so_far[i] += sent[i];
  }
  for (size_t i = 0; i < kCount; ++i) EXPECT_NEAR(sent_so_far[i] + state.residual[i], values_so_far[i], 1e-4);
}

TEST(BlockValues, BytesAreRoundedToNearestEven) {
  std::vector<float> values(kBlockValues);
  values[0] = -127, values[1] = 2.5F, values[2] = 3.5F, values[1023] = 0.4F;
  const auto blocks = encoded(oracle(), kInt8Block, values);
  const std::vector<float> back = decoded(oracle(), kInt8Block, blocks, kBlockValues);
  EXPECT_THAT((std::vector{back[0], back[1], back[2], back[1023]}), ElementsAre(-127, 2, 4, 0));
}

TEST(BlockValues, AValueThatIsNotFiniteMakesABlockOfNans) {
  for (const DataType type : {kInt8Block, kInt4Block, kSignBlock}) {
    for (const float bad : {kNan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> values = normal_values(2 * kBlockValues);
      values[5] = bad;
      State state{std::vector<float>(values.size()), {}};
      const auto back = decoded(oracle(), type, encoded(oracle(), type, values, 7, &state), values.size());
      for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(std::isnan(back[i]), i < kBlockValues) << name_of(type);
      EXPECT_THAT(std::vector(state.residual.begin(), state.residual.begin() + kBlockValues), Each(0.0F));
    }
  }
}

TEST(BlockValues, TinyBlocksAreZeros) {
  for (const DataType type : {kInt8Block, kInt4Block}) {
    const std::vector<float> tiny(kBlockValues, 0x1p-126F);
    EXPECT_THAT(decoded(oracle(), type, encoded(oracle(), type, tiny), kBlockValues), Each(0.0F)) << name_of(type);
  }
}

TEST(BlockValues, SignsHaveTheMeanMagnitude) {
  const std::vector<float> values = {1, -2, 3, -0.0F};
  EXPECT_THAT(decoded(oracle(), kSignBlock, encoded(oracle(), kSignBlock, values), 4),
              ElementsAre(1.5F, -1.5F, 1.5F, -1.5F));
}

TEST(BlockValues, DitheringIsExactOnAverage) {
  const std::vector<float> values = {7, 0.3F, -2.6F, 0, -7};
  std::vector<double> sums(values.size());
  constexpr uint32_t kKeys = 20'000;
  for (uint32_t key = 0; key < kKeys; ++key) {
    const auto back = decoded(oracle(), kInt4Block, encoded(oracle(), kInt4Block, values, key), values.size());
    for (size_t i = 0; i < values.size(); ++i) sums[i] += back[i];
  }
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(sums[i] / kKeys, values[i], 0.02);
}

TEST(BlockValues, TopKKeepsTheLargestMagnitudesAndOfEqualOnesTheFirst) {
  const std::vector<float> values = {1, -5, 2, 5, 2, -2, 0, 2};
  EXPECT_THAT(decoded(oracle(), top_k(4), encoded(oracle(), top_k(4), values), 8),
              ElementsAre(0, -5, 2, 5, 2, 0, 0, 0));
}

// Many magnitudes are equal, and some blocks have fewer different ones than places.
TEST(BlockValues, TopKKeepsWhatASortPutsFirst) {
  std::mt19937 random(5);
  for (const uint32_t kept : {1, 16, 32, 128}) {
    for (const int different : {1, 2, 40, 100'000}) {
      std::vector<float> values(kBlockValues);
      for (float& value : values) value = std::ldexp(static_cast<float>(static_cast<int>(random() % different)), -9);
      for (size_t i = 0; i < kBlockValues; i += 3) values[i] = -values[i];
      std::vector<size_t> order(kBlockValues);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return std::fabs(values[i]); });
      std::vector<float> expected(kBlockValues);
      for (const size_t i : std::span(order).first(kept)) expected[i] = values[i];
      const auto blocks = encoded(oracle(), top_k(kept), values);
      EXPECT_EQ(decoded(oracle(), top_k(kept), blocks, kBlockValues), expected) << kept << " " << different;
      uint16_t indexes[128];
      std::memcpy(indexes, blocks.data(), kept * sizeof(uint16_t));
      EXPECT_TRUE(std::is_sorted(indexes, indexes + kept));
    }
  }
}

TEST(BlockValues, RandomKSendsANanThoughItsPlaceIsNotChosen) {
  std::vector<float> values(2 * kBlockValues);
  for (size_t i = 0; i < kBlockValues; ++i) values[i] = std::numeric_limits<float>::infinity();
  const auto kept = decoded(oracle(), random_k(4), encoded(oracle(), random_k(4), values), values.size());
  EXPECT_EQ(std::ranges::count_if(kept, [](float value) { return std::isnan(value); }), 1);
}

TEST(BlockValues, RandomKKeepsOnePlaceOfEachPart) {
  std::vector<float> values(kBlockValues);
  std::iota(values.begin(), values.end(), 1.0F);
  const auto kept = decoded(oracle(), random_k(4), encoded(oracle(), random_k(4), values), kBlockValues);
  for (size_t part = 0; part < 4; ++part) {
    int found = 0;
    for (size_t i = part * 256; i < (part + 1) * 256; ++i) {
      EXPECT_TRUE(kept[i] == 0 || kept[i] == values[i]) << i;
      found += kept[i] != 0 ? 1 : 0;
    }
    EXPECT_EQ(found, 1);
  }
  EXPECT_NE(kept, decoded(oracle(), random_k(4), encoded(oracle(), random_k(4), values, 8), kBlockValues, 8));
}

TEST(BlockValues, ValuesThatAResultLacksArePutBack) {
  std::vector<float> own(kBlockValues + 10), other(kBlockValues + 10), residual(kBlockValues + 10, 0.5F);
  own[3] = 4, own[9] = -6, own[kBlockValues + 2] = 1, own[kBlockValues + 4] = 1;
  other[9] = 1, other[20] = 9, other[kBlockValues + 2] = 3, other[kBlockValues + 4] = 3;
  put_back(top_k(2), encoded(oracle(), top_k(2), own).data(), encoded(oracle(), top_k(2), other).data(), own.size(),
           residual.data());
  EXPECT_EQ(residual[3], 4.5F);
  residual[3] = 0.5F;
  EXPECT_THAT(residual, Each(0.5F));
}

}  // namespace
}  // namespace gleaner::kernels
