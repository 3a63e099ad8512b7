// Tests that copies, events and completions cause no allocations after a warm-up. The functions of the driver do
// nothing here, since the double itself allocates.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "comm-lib/device/completions.h"
#include "comm-lib/device/cuda_device.h"
#include "comm-lib/device/event_pool.h"
#include "comm-lib/device/pinned_ring.h"
#include "tests/unit/device/idle_api.h"
#include "tests/unit/engine/allocation_counter.h"

namespace gleaner::device {
namespace {

using gleaner::testing::allocations_so_far;

TEST(DeviceAllocation, NoneOnceWarm) {
  const auto device = *open_cuda_device(*Driver::start(idle_api()), 0);
  const auto stream = *device->create_stream(Priority::kHigh);
  const auto completions = *Completions::create();
  EventPool events(device.get());
  std::vector<std::byte> memory(1 << 16);
  PinnedRing ring(memory, 64);
  std::vector<uint64_t> tags;

  const auto step = [&] {
    std::array<MutableBytes, 50> slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      auto ready = events.take();
      auto copied = events.take();
      slots[i] = *ring.take(1000);
      ASSERT_TRUE(device->record(CallerStream{}, **ready).ok());
      ASSERT_TRUE(stream->wait_for(**ready).ok());
      ASSERT_TRUE(stream->copy_to_host(Address{}, slots[i]).ok());
      ASSERT_TRUE(stream->copy_to_device(slots[i], Address{}).ok());
      ASSERT_TRUE(stream->record(**copied).ok());
      ASSERT_TRUE((*copied)->is_done().ok());
      ASSERT_TRUE(device->hold(CallerStream{}, **copied).ok());
      ASSERT_TRUE(stream->notify(*completions, i).ok());
    }
    ASSERT_TRUE(stream->check().ok());
    tags.clear();
    completions->take(tags);
    ASSERT_EQ(tags.size(), slots.size());
    for (const uint64_t tag : tags) ASSERT_TRUE(ring.give_back(slots[tag]).ok());
  };
  step();
  step();
  const uint64_t before = allocations_so_far().count;
  step();
  step();
  EXPECT_EQ(allocations_so_far().count, before);
}

}  // namespace
}  // namespace gleaner::device
