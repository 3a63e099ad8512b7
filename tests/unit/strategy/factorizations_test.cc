#include "common/strategy/factorizations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace gleaner::strategy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Factors = std::vector<uint32_t>;

// Returns all ordered factorizations of `rest` into factors of 2 and more.
std::vector<Factors> all_of(uint32_t rest) {
  if (rest == 1) return {{}};
  std::vector<Factors> all;
  for (uint32_t factor = 2; factor <= rest; ++factor) {
    if (rest % factor != 0) continue;
    for (Factors factors : all_of(rest / factor)) {
      factors.insert(factors.begin(), factor);
      all.push_back(std::move(factors));
    }
  }
  return all;
}

double stage(uint32_t below, uint32_t factor) {
  return (factor - 1.0) / below + 0.3 * ((below * 7 + factor * 13) % 11);
}

double sum(const Factors& factors) {
  double seconds = 0;
  uint32_t below = 1;
  for (const uint32_t factor : factors) {
    seconds += stage(below, factor);
    below *= factor;
  }
  return seconds;
}

TEST(Factorizations, TheBestOfAll) {
  for (const uint32_t ranks : {12u, 64u, 360u}) {
    std::vector<double> expected;
    for (const Factors& factors : all_of(ranks)) {
      if (factors.size() > 1) expected.push_back(sum(factors));
    }
    std::ranges::sort(expected);
    const std::vector<Factors> best = best_factorizations(ranks, 5, stage);
    ASSERT_EQ(best.size(), 5u);
    for (size_t i = 0; i < best.size(); ++i) EXPECT_NEAR(sum(best[i]), expected[i], 1e-9) << ranks;
  }
}

// 1,024 has 512 ordered factorizations, 512 has 256.
TEST(Factorizations, HundredsAreCompared) {
  for (const uint32_t ranks : {96u, 512u, 1024u}) {
    double least = std::numeric_limits<double>::infinity();
    for (const Factors& factors : all_of(ranks)) {
      if (factors.size() > 1) least = std::min(least, sum(factors));
    }
    EXPECT_NEAR(sum(best_factorizations(ranks, 1, stage).front()), least, 1e-9) << ranks;
  }
}

TEST(Factorizations, PrimesHaveNone) {
  EXPECT_THAT(best_factorizations(7, 5, stage), IsEmpty());
  EXPECT_THAT(best_factorizations(1, 5, stage), IsEmpty());
  EXPECT_THAT(best_factorizations(4, 5, stage), ElementsAre(Factors{2, 2}));
}

TEST(Factorizations, LargeNumbersAreCheap) {
  size_t calls = 0;
  const auto counted = [&](uint32_t below, uint32_t factor) {
    ++calls;
    return stage(below, factor);
  };
  EXPECT_EQ(best_factorizations(55440, 8, counted).size(), 8u) << "which has more than 100,000 ordered factorizations";
  EXPECT_LT(calls, 5000u);
}

}  // namespace
}  // namespace gleaner::strategy
