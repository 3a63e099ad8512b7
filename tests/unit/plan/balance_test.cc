// Tests that every prefix of the stream is split by the shares, to within one slice, for slices of any sizes.
#include "common/plan/balance.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/unit/plan/fleets.h"

namespace gleaner::plan {
namespace {

// Deals slices of random sizes. Fails if a member is ever more than one largest slice away from its share.
void expect_balanced(const std::vector<double>& shares, uint64_t largest, int slices, std::mt19937_64& random) {
  std::vector<uint64_t> owned(shares.size());
  const int style = std::uniform_int_distribution(0, 3)(random);
  std::vector<uint64_t> sizes(slices);
  for (int slice = 0; slice < slices; ++slice) {
    uint64_t& bytes = sizes[slice];
    bytes = largest;
    if (style == 1) bytes = std::uniform_int_distribution<uint64_t>(1, largest)(random);
    if (style == 2 && slice % 2 == 0) bytes = 1 + largest / 64;
    if (style == 3 && slice > slices / 2) bytes = 1 + largest / 1000;
  }
  Balance balance(shares, owned, std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}), largest);
  uint64_t stream = 0;
  for (int slice = 0; slice < slices; ++slice) {
    const uint64_t bytes = sizes[slice];
    const uint32_t owner = balance.next(bytes);
    balance.give(bytes);
    ASSERT_LT(owner, shares.size());
    ASSERT_GT(shares[owner], 0);
    owned[owner] += bytes;
    stream += bytes;
    for (size_t member = 0; member < shares.size(); ++member) {
      const double due = shares[member] * static_cast<double>(stream);
      const double tolerance = static_cast<double>(largest) * (1 + 1e-9);
      ASSERT_NEAR(static_cast<double>(owned[member]), due, tolerance) << "member " << member << " slice " << slice;
    }
  }
}

TEST(Balance, EveryPrefixWithinOneSlice) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto share = shares(random_fleet(random));
    expect_balanced(share, std::uniform_int_distribution<uint64_t>(1, 1 << 22)(random), 2000, random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Extreme shares: powers of two, one very large share among small ones, zeros.
TEST(Balance, ExtremeShares) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<double> share(std::uniform_int_distribution(1, 30)(random));
    double total = 0;
    for (double& part : share) {
      part = std::exp2(std::uniform_real_distribution(-30., 0.)(random));
      if (std::uniform_int_distribution(0, 5)(random) == 0) part = 0;
      total += part;
    }
    if (total == 0) continue;
    for (double& part : share) part /= total;
    expect_balanced(share, 1 << 20, 2000, random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Balance, EqualSharesTakeTurns) {
  Balance balance({0.25, 0.25, 0.25, 0.25}, {0, 0, 0, 0}, 400, 10);
  for (uint32_t slice = 0; slice < 40; ++slice) {
    EXPECT_EQ(balance.next(10), slice % 4);
    balance.give(10);
  }
}

// A member whose whole share is less than a slice gets only the small slices at the end.
TEST(Balance, SmallSharesGetNoWholeSlice) {
  std::vector<double> share(11, 0.0999);
  share[10] = 0.001;
  std::vector<uint64_t> owned(11);
  Balance balance(share, owned, 100'000, 1000);
  for (uint64_t left = 100'000; left > 0;) {
    const uint64_t bytes = left > 20'000 ? 1000 : 100;
    owned[balance.next(bytes)] += bytes;
    balance.give(bytes);
    left -= bytes;
  }
  for (int member = 0; member < 10; ++member) EXPECT_NEAR(static_cast<double>(owned[member]), 9990, 100);
  EXPECT_EQ(owned[10], 100u);
}

TEST(Balance, ContinuesAnEarlierBalance) {
  const std::vector<double> share = {0.5, 0.3, 0.2};
  Balance one(share, {0, 0, 0}, 700, 7);
  std::vector<uint64_t> owned(3);
  for (int slice = 0; slice < 100; ++slice) {
    const uint32_t owner = Balance(share, owned, 700, 7).next(7);  // a new object each time
    EXPECT_EQ(one.next(7), owner);
    one.give(7);
    owned[owner] += 7;
  }
}

}  // namespace
}  // namespace gleaner::plan
