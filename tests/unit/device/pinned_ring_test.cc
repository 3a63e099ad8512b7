#include "comm-lib/device/pinned_ring.h"

#include <gtest/gtest.h>

#include <random>

namespace gleaner::device {
namespace {

constexpr size_t kGranule = 64;

// A ring over memory that nobody touches.
struct Area {
  explicit Area(size_t granules) : memory(granules * kGranule), ring(memory, kGranule) {}
  std::vector<std::byte> memory;
  PinnedRing ring;
};

TEST(PinnedRing, OlderSlotHoldsBackYoungerOnes) {
  Area area(8);
  const MutableBytes a = *area.ring.take(3 * kGranule);
  const MutableBytes b = *area.ring.take(3 * kGranule);
  EXPECT_EQ(area.ring.free_bytes(), 2 * kGranule);
  ASSERT_TRUE(area.ring.give_back(b).ok());
  EXPECT_EQ(area.ring.free_bytes(), 2 * kGranule);
  ASSERT_TRUE(area.ring.give_back(a).ok());
  EXPECT_EQ(area.ring.free_bytes(), 8 * kGranule);
}

TEST(PinnedRing, WholeAreaIsOneSlot) {
  Area area(5);
  for (int round = 0; round < 3; ++round) {
    const MutableBytes small = *area.ring.take(1);
    ASSERT_TRUE(area.ring.give_back(small).ok());
    const auto all = area.ring.take(area.ring.capacity());
    ASSERT_TRUE(all.has_value());
    EXPECT_EQ(all->data(), area.memory.data());
    EXPECT_FALSE(area.ring.take(1).has_value());
    ASSERT_TRUE(area.ring.give_back(*all).ok());
  }
}

TEST(PinnedRing, RefusesWhatItCannotHold) {
  Area area(4);
  EXPECT_FALSE(area.ring.take(4 * kGranule + 1).has_value());
  EXPECT_FALSE(area.ring.take(0).has_value());
  PinnedRing empty({}, kGranule);
  EXPECT_EQ(empty.capacity(), 0);
  EXPECT_FALSE(empty.take(1).has_value());
}

TEST(PinnedRing, SecondReturnIsAnError) {
  Area area(4);
  const MutableBytes a = *area.ring.take(10);
  const MutableBytes b = *area.ring.take(10);
  ASSERT_TRUE(area.ring.give_back(b).ok());
  EXPECT_EQ(area.ring.give_back(b).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(area.ring.give_back(a).ok());
  EXPECT_EQ(area.ring.give_back(a).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(area.ring.give_back(MutableBytes(area.memory).subspan(1)).code(), absl::StatusCode::kFailedPrecondition);
}

class PinnedRingSeeds : public ::testing::TestWithParam<uint64_t> {};

// Compares with a list of the slots in use: none overlap, and the ring ends empty.
TEST_P(PinnedRingSeeds, SlotsNeverOverlap) {
  std::mt19937_64 random(GetParam());
  Area area(37);
  std::vector<MutableBytes> in_use;
  for (int i = 0; i < 3000; ++i) {
    if (random() % 2 == 0) {
      const auto slot = area.ring.take(1 + random() % (12 * kGranule));
      if (!slot.has_value()) continue;
      for (const MutableBytes& other : in_use) {
        ASSERT_TRUE(slot->data() + slot->size() <= other.data() || other.data() + other.size() <= slot->data());
      }
      ASSERT_LE(slot->data() + slot->size(), area.memory.data() + area.memory.size());
      in_use.push_back(*slot);
    } else if (!in_use.empty()) {
      std::swap(in_use[random() % in_use.size()], in_use.back());
      ASSERT_TRUE(area.ring.give_back(in_use.back()).ok());
      in_use.pop_back();
    }
  }
  for (const MutableBytes& slot : in_use) ASSERT_TRUE(area.ring.give_back(slot).ok());
  EXPECT_EQ(area.ring.free_bytes(), area.ring.capacity());
}

INSTANTIATE_TEST_SUITE_P(Seeds, PinnedRingSeeds, ::testing::Range<uint64_t>(0, 10));

}  // namespace
}  // namespace gleaner::device
