// Tests that a sum on a GPU causes no allocations. The functions of the driver do nothing here.
#include <gtest/gtest.h>

#include <vector>

#include "comm-lib/device/cuda_device.h"
#include "comm-lib/device/host_device.h"
#include "comm-lib/device/kernels/kernels.h"
#include "tests/unit/device/idle_api.h"
#include "tests/unit/device_kernels/double_image.h"
#include "tests/unit/engine/allocation_counter.h"

namespace gleaner::device {
namespace {

using gleaner::testing::allocations_so_far;

void expect_none(Device& device) {
  const auto kernels = *Kernels::load(&device, kDoubleImage);
  const auto stream = *device.create_stream(Priority::kNormal);
  std::vector<float> values(100);
  const std::vector<Address> sources(10, Address{reinterpret_cast<uint64_t>(values.data())});
  const Address result = sources[0];
  ASSERT_TRUE(kernels->sum(*stream, DataType::kFloat32, sources, result, values.size()).ok());
  const uint64_t before = allocations_so_far().count;
  ASSERT_TRUE(kernels->sum(*stream, DataType::kFloat32, sources, result, values.size()).ok());
  EXPECT_EQ(allocations_so_far().count, before);
}

TEST(DeviceKernelsAllocation, NoneOnAGpu) { expect_none(**open_cuda_device(*Driver::start(idle_api()), 0)); }

TEST(DeviceKernelsAllocation, NoneOnTheHost) { expect_none(*open_host_device()); }

}  // namespace
}  // namespace gleaner::device
