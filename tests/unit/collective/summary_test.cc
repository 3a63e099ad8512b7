#include "common/collective/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/collective/algorithms.h"
#include "common/collective/halving_doubling.h"
#include "common/collective/racks.h"
#include "common/collective/ring.h"

namespace gleaner::collective {
namespace {

TEST(Summary, Ring) {
  const Summary summary = *summarize(ring(8));
  EXPECT_EQ(summary.messages, 8u * 14);
  EXPECT_EQ(summary.least_sent, 14u);
  EXPECT_EQ(summary.most_received, 14u);
  EXPECT_EQ(summary.star_chunks, 14u);
  ASSERT_EQ(summary.steps.size(), 1u);
  EXPECT_EQ(summary.steps[0].first, 0u);
  EXPECT_EQ(summary.steps[0].last, 13u);
  EXPECT_EQ(summary.steps[0].messages, 8u);
  ASSERT_EQ(summary.steps[0].who.size(), kShownTransfers);
  EXPECT_EQ(summary.steps[0].who[3], (Transfer{3, 4, 1, 1}));
}

// Two racks of three ranks: the master gets two vectors of two chunks at once, then exchanges one chunk twice.
TEST(Summary, UnequalRanks) {
  const Summary summary = *summarize(racks(6, {{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(summary.least_sent, 2u);
  EXPECT_EQ(summary.most_sent, 6u);
  EXPECT_EQ(summary.least_received, 2u);
  EXPECT_EQ(summary.most_received, 6u);
  EXPECT_EQ(summary.star_chunks, 4u + 1 + 1 + 4);
  ASSERT_EQ(summary.steps.size(), 3u);
  EXPECT_EQ(summary.steps[0].largest, 2u);
  EXPECT_EQ(summary.steps[0].most, 4u);
  EXPECT_EQ(summary.steps[1].last, 2u);
}

TEST(SlicesPerVector, IsOneOverTheMeanSlice) {
  const auto slices = [](const std::string& algorithm, uint32_t ranks, std::vector<uint32_t> stages = {}) {
    return slices_per_vector(*make_schedule({.algorithm = algorithm, .factors = std::move(stages)}, ranks));
  };
  EXPECT_DOUBLE_EQ(slices("ring", 8), 8);
  EXPECT_DOUBLE_EQ(slices("halving-doubling", 8), 3 / (1. / 2 + 1. / 4 + 1. / 8));
  EXPECT_DOUBLE_EQ(slices("double-tree", 8), 16) << "each tree carries 8 chunks";
  EXPECT_DOUBLE_EQ(slices("blueconnect", 12, {3, 2, 2}), 4 / (2. / 3 + 1. / 6 + 1. / 12));
  EXPECT_DOUBLE_EQ(slices("ring", 1), 1);
}

TEST(Summary, OneRank) {
  const Summary summary = *summarize(halving_doubling(1));
  EXPECT_EQ(summary.messages, 0u);
  EXPECT_TRUE(summary.steps.empty());
}

}  // namespace
}  // namespace gleaner::collective
