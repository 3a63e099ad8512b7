#include "comm-lib/device/copier.h"

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "tests/unit/device/gpus.h"

namespace gleaner::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CopierTest : public Gpus {
 protected:
  CopierTest() { EXPECT_TRUE(device->record(number_of(producer), *ready).ok()); }
  // Copies the tensor when the producer has made it.
  absl::Status to_host(size_t slot, uint64_t tag) {
    GLN_ASSIGN_OR_RETURN(ReportingStream* const behind,
                         copier->behind({device.get(), number_of(producer), ready.get(), nullptr}));
    GLN_RETURN_IF_ERROR((*behind)->copy_to_host(Address{tensor}, slots[slot]));
    return behind->notify(tag);
  }
  MutableBytes slot(size_t number) const { return pinned->bytes().subspan(number * kBytes, kBytes); }
  std::vector<uint64_t> take(size_t count) {
    std::vector<uint64_t> tags;
    const absl::Time end = absl::Now() + absl::Minutes(1);
    while (tags.size() < count && absl::Now() < end) EXPECT_TRUE(copier->take(tags).ok());
    return tags;
  }

  CUstream producer = caller->create_stream();
  CUdeviceptr tensor = caller->allocate(kBytes);
  std::unique_ptr<Event> ready = *device->create_event();
  std::unique_ptr<PinnedMemory> pinned = *device->allocate_pinned(2 * kBytes);
  std::vector<MutableBytes> slots = {slot(0), slot(1)};
  std::unique_ptr<Copier> copier = *Copier::create(device.get());
};

TEST_F(CopierTest, CopiesBothWaysInOrder) {
  double_.hold(producer, 1);
  caller->write(producer, tensor, kBytes, 3);
  ASSERT_TRUE(device->record(number_of(producer), *ready).ok());
  ASSERT_TRUE(to_host(0, 7).ok());
  ASSERT_TRUE(to_host(1, 8).ok());
  std::vector<uint64_t> tags;
  EXPECT_TRUE(copier->take(tags).ok());
  EXPECT_THAT(tags, IsEmpty()) << "the producer is held";
  double_.hold(producer, 0);
  EXPECT_THAT(take(2), ElementsAre(7, 8));
  EXPECT_TRUE(all_are(slots[0], 3) && all_are(slots[1], 3));

  const auto copied = *device->create_event();
  std::ranges::fill(slots[0], std::byte{9});
  ASSERT_TRUE(copier->to_device(slots[0], Address{tensor}, 5).ok());
  ASSERT_TRUE(copier->record_to_device(*copied).ok());
  ASSERT_TRUE(device->hold(number_of(producer), *copied).ok());
  const ConstBytes seen = caller->read(producer, tensor, kBytes);
  caller->synchronize(producer);
  EXPECT_TRUE(all_are(seen, 9));
  EXPECT_THAT(take(1), ElementsAre(5));
  EXPECT_TRUE(copier->drain(absl::ZeroDuration()));
}

// Without the order the double finds the program's write.
TEST_F(CopierTest, RecordsCopiesOfBothDirections) {
  const CUstream user = caller->create_stream();
  const CUdeviceptr other = caller->allocate(kBytes);
  const auto copied = *device->create_event();
  double_.hold(producer, 1);
  caller->write(producer, tensor, kBytes, 3);
  ASSERT_TRUE(device->record(number_of(producer), *ready).ok());
  ASSERT_TRUE(to_host(0, 1).ok());
  ASSERT_TRUE(copier->to_device(slots[1], Address{other}, 2).ok());
  ASSERT_TRUE(copier->record_all(*copied).ok());
  ASSERT_TRUE(device->hold(number_of(user), *copied).ok());
  caller->write(user, tensor, kBytes, 0);
  caller->write(user, other, kBytes, 0);
  double_.hold(producer, 0);
  caller->synchronize(user);
  EXPECT_TRUE(copier->drain(absl::Minutes(1)));
}

TEST_F(CopierTest, FailureOfTheGpuIsTold) {
  double_.hold(producer, 1);
  double_.fail_kernel(producer, CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_TRUE(device->record(number_of(producer), *ready).ok());
  ASSERT_TRUE(to_host(0, 1).ok());
  std::vector<uint64_t> tags;
  EXPECT_EQ(copier->take(tags), absl::OkStatus());
  EXPECT_FALSE(copier->drain(absl::ZeroDuration()));
  double_.hold(producer, 0);
  caller->synchronize_failed(producer);
  const absl::Time end = absl::Now() + absl::Minutes(1);
  while (copier->take(tags).ok() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_LT(absl::Now(), end);
  EXPECT_THAT(tags, IsEmpty());
  EXPECT_TRUE(copier->drain(absl::Minutes(1)));
}

TEST_F(CopierTest, CopyWithoutATagIsNotDrained) {
  double_.fail_next("cuLaunchHostFunc", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(to_host(0, 1).ok());
  EXPECT_FALSE(copier->drain(absl::Minutes(1)));
  caller->synchronize(producer);
  ASSERT_TRUE(to_host(1, 2).ok());
  EXPECT_THAT(take(1), ElementsAre(2));
}

}  // namespace
}  // namespace gleaner::device
