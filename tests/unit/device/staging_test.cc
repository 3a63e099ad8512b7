#include "comm-lib/device/staging.h"

#include "tests/unit/device/gpus.h"

namespace gleaner::device {
namespace {

constexpr size_t kPage = 4096;

class StagingTest : public Gpus {
 protected:
  std::unique_ptr<Staging> staging = *Staging::create(device.get(), 4 * kPage);
  MutableBytes take(size_t bytes, bool must) { return staging->take(bytes, must)->memory; }
  bool is_in_ring(MutableBytes slot) const {
    const MutableBytes ring = staging->ring();
    return slot.data() >= ring.data() && slot.data() + slot.size() <= ring.data() + ring.size();
  }
};

TEST_F(StagingTest, TakesFromTheRingWhileThereIsRoom) {
  const MutableBytes a = take(3 * kPage, true);
  const MutableBytes b = take(1, true);
  EXPECT_TRUE(is_in_ring(a) && is_in_ring(b));
  EXPECT_EQ(a.size(), 3 * kPage);
  EXPECT_EQ(b.size(), 1);
  EXPECT_TRUE(take(1, false).empty());
  EXPECT_EQ(staging->bytes_beside(), 0);
  staging->give_back(a);
  EXPECT_TRUE(is_in_ring(take(3 * kPage, false)));
}

TEST_F(StagingTest, TakesTheSmallestBlockBesideTheRing) {
  take(4 * kPage, true);
  const MutableBytes large = take(5 * kPage, true);
  const MutableBytes small = take(10, true);
  EXPECT_FALSE(is_in_ring(large) || is_in_ring(small));
  EXPECT_EQ(large.size(), 5 * kPage);
  EXPECT_EQ(small.size(), 10);
  EXPECT_EQ(staging->bytes_beside(), 8 * kPage + kPage);
  staging->give_back(large);
  staging->give_back(small);
  EXPECT_EQ(take(kPage, true).data(), small.data());
  EXPECT_EQ(take(20, true).data(), large.data()) << "the small block is in use";
  EXPECT_NE(take(20, true).data(), large.data());
  EXPECT_EQ(staging->bytes_beside(), 8 * kPage + 2 * kPage);
}

TEST_F(StagingTest, NoMemoryIsLeft) {
  double_.fail_next("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(Staging::create(device.get(), kPage).status(), IsError(absl::StatusCode::kResourceExhausted, "pin"));
  const MutableBytes whole = take(4 * kPage, true);
  double_.fail_next("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(staging->take(1, true).status(), IsError(absl::StatusCode::kResourceExhausted, "pin"));
  staging->give_back(whole);
  EXPECT_TRUE(is_in_ring(take(1, true)));
}

}  // namespace
}  // namespace gleaner::device
