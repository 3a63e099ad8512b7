// Compares every variant with the scalar oracle, bit by bit.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <string>

#include "common/kernels/kernels.h"
#include "tests/unit/kernels/hard_values.h"

namespace gleaner::kernels {
namespace {

// The types of the sources and of the result.
struct Types {
  DataType from;
  DataType to;
};
constexpr Types kSameTypes[] = {{DataType::kFloat32, DataType::kFloat32},
                                {DataType::kFloat64, DataType::kFloat64},
                                {DataType::kFloat16, DataType::kFloat16},
                                {DataType::kBFloat16, DataType::kBFloat16},
                                {DataType::kInt32, DataType::kInt32}};
constexpr Types kMixedTypes[] = {{DataType::kFloat16, DataType::kFloat32},
                                 {DataType::kBFloat16, DataType::kFloat32},
                                 {DataType::kFloat32, DataType::kFloat16},
                                 {DataType::kFloat32, DataType::kBFloat16}};

std::string to_string(const Types& types) {
  const std::string from(name_of(types.from));
  return types.from == types.to ? from : from + "_to_" + std::string(name_of(types.to));
}

// Has sources and a result at any byte offset. Their blocks end with the last element, so a sanitizer detects accesses
// behind it.
class Sums {
 public:
  Sums(Types types, size_t elements, size_t count, size_t offset, std::mt19937_64& random)
      : types_(types), elements_(elements), offset_(offset), blocks_(count) {
    for (size_t s = 0; s < count; ++s) {
      blocks_[s].resize(offset_of(s) + elements * size_of(types.from));
      fill(types.from, std::span(blocks_[s]).subspan(offset_of(s)), random);
      sources_.push_back(blocks_[s].data() + offset_of(s));
    }
  }

  std::vector<std::byte> into_new_memory(const Kernels& kernels, uint32_t divisor) const {
    constexpr size_t kGuard = 64;
    std::vector<std::byte> memory(offset_ + elements_ * size_of(types_.to) + kGuard, std::byte{0x5A});
    kernels.sum(types_.from, types_.to, sources_, memory.data() + offset_, elements_, divisor);
    return memory;
  }

  // Sums into a copy of a source, which serves as source and result.
  std::vector<std::byte> in_place(const Kernels& kernels, uint32_t divisor, size_t source) const {
    std::vector<std::byte> memory = blocks_[source];
    std::vector<const std::byte*> sources = sources_;
    sources[source] = memory.data() + offset_of(source);
    kernels.sum(types_.from, sources, memory.data() + offset_of(source), elements_, divisor);
    memory.erase(memory.begin(), memory.begin() + static_cast<ptrdiff_t>(offset_of(source)));
    return memory;
  }

 private:
  size_t offset_of(size_t source) const { return (offset_ * (source + 1)) % 65; }

  Types types_;
  size_t elements_;
  size_t offset_;
  std::vector<std::vector<std::byte>> blocks_;
  std::vector<const std::byte*> sources_;
};

class Variants : public ::testing::TestWithParam<Types> {
 protected:
  // Compares both kinds of sums at all divisors that the type allows.
  void expect_same(const Sums& sums, const std::string& what) const {
    for (const uint32_t divisor : GetParam().from == DataType::kInt32 ? std::vector<uint32_t>{1} : divisors_) {
      const std::vector<std::byte> expected = sums.into_new_memory(oracle_, divisor);
      for (absl::string_view name : available_variants()) {
        ASSERT_TRUE(sums.into_new_memory(*Kernels::choose(name), divisor) == expected)
            << std::string(name) << ", divisor " << divisor << ", " << what;
      }
    }
  }

  const Kernels oracle_ = *Kernels::choose("scalar");
  const std::vector<uint32_t> divisors_ = {1, 2, 3, 7, 8};
  std::mt19937_64 random_{3};
};
INSTANTIATE_TEST_SUITE_P(Kernels, Variants, ::testing::ValuesIn(kSameTypes),
                         [](const auto& tested) { return to_string(tested.param); });
INSTANTIATE_TEST_SUITE_P(PartialSums, Variants, ::testing::ValuesIn(kMixedTypes),
                         [](const auto& tested) { return to_string(tested.param); });

TEST_P(Variants, AgreeAtEverySizeAndOddOffsets) {
  for (size_t elements = 0; elements <= 257; ++elements) {
    for (size_t count : {1, 2, 3, 9}) {
      const size_t offset = (elements * 7 + count) % 64;
      const Sums sums(GetParam(), elements, count, offset, random_);
      ASSERT_NO_FATAL_FAILURE(expect_same(sums, testing::PrintToString(std::tuple(elements, count, offset))));
    }
  }
}

TEST_P(Variants, AgreeAtEveryNumberOfSources) {
  for (size_t count = 1; count <= 20; ++count) {
    for (size_t elements : {63, 1025, 4500}) {
      const Sums sums(GetParam(), elements, count, count % 2, random_);
      ASSERT_NO_FATAL_FAILURE(expect_same(sums, testing::PrintToString(std::tuple(elements, count))));
    }
  }
  const Sums many(GetParam(), 2100, 1024, 1, random_);
  expect_same(many, "1024 sources");
}

TEST_P(Variants, MayOverwriteAnySource) {
  if (GetParam().from != GetParam().to) return;  // kernels.h does not allow it
  for (size_t count : {1, 2, 5, 12}) {
    for (size_t elements : {5, 255, 5000}) {
      const Sums sums(GetParam(), elements, count, 0, random_);
      const std::vector<std::byte> fresh = sums.into_new_memory(oracle_, 1);
      for (absl::string_view name : available_variants()) {
        for (size_t source = 0; source < count; ++source) {
          const std::vector<std::byte> overwritten = sums.in_place(*Kernels::choose(name), 1, source);
          ASSERT_TRUE(std::equal(overwritten.begin(), overwritten.end(), fresh.begin()))
              << std::string(name) << ", source " << source << " of " << count << ", elements " << elements;
        }
      }
    }
  }
}

// Checks every 16-bit value alone, and added to a value that makes it round.
TEST(SixteenBitVariants, AgreeOnAllValues) {
  const Kernels oracle = *Kernels::choose("scalar");
  std::vector<uint16_t> all(65536);
  std::iota(all.begin(), all.end(), uint16_t{0});
  for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    for (const uint64_t other : hard_values(type)) {
      const std::vector<uint16_t> others(all.size(), static_cast<uint16_t>(other));
      const std::byte* const sources[] = {reinterpret_cast<const std::byte*>(all.data()),
                                          reinterpret_cast<const std::byte*>(others.data())};
      for (size_t count : {1, 2}) {
        std::vector<uint16_t> expected(all.size());
        std::vector<uint16_t> result(all.size());
        oracle.sum(type, std::span(sources, count), reinterpret_cast<std::byte*>(expected.data()), all.size(), 3);
        for (absl::string_view name : available_variants()) {
          Kernels::choose(name)->sum(type, std::span(sources, count), reinterpret_cast<std::byte*>(result.data()),
                                     all.size(), 3);
          ASSERT_TRUE(result == expected) << std::string(name) << " with " << other;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gleaner::kernels
