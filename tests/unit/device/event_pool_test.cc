#include "comm-lib/device/event_pool.h"

#include <optional>

#include "comm-lib/device/host_device.h"
#include "tests/unit/device/gpus.h"

namespace gleaner::device {
namespace {

TEST(EventPool, ReusesEventsAsUnrecorded) {
  const auto device = open_host_device();
  EventPool pool(device.get());
  for (int i = 0; i < 10; ++i) {
    const auto a = pool.take();
    const auto b = pool.take();
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_NE(&**a, &**b);
    EXPECT_FALSE((*a)->is_recorded());
    ASSERT_TRUE(device->record(CallerStream{}, **a).ok());
  }
  EXPECT_EQ(pool.size(), 2);
}

using EventPoolOfGpu = Gpus;

TEST_F(EventPoolOfGpu, LackOfAnEventIsAnError) {
  EventPool pool(device.get());
  double_.fail_next("cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(pool.take().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(pool.take().ok());
  EXPECT_EQ(pool.size(), 1);
}

}  // namespace
}  // namespace gleaner::device
