// Tests the double itself, where the other tests rely on it.
#include <unistd.h>

#include <cerrno>

#include "tests/doubles/cuda/cuda_double.h"
#include "tests/unit/device/gpus.h"

namespace gleaner::device {
namespace {

class CudaDouble : public Gpus {
 protected:
  CUdeviceptr tensor = caller->allocate(kBytes);
};

TEST_F(CudaDouble, HostCannotTouchDeviceMemory) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], reinterpret_cast<const void*>(tensor), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(CudaDouble, LegacyStreamWaitsForBlockingStreams) {
  const CUstream kernels = caller->create_stream();
  caller->write(kernels, tensor, kBytes, 4);
  const ConstBytes seen = caller->read(nullptr, tensor, kBytes);
  caller->write(kernels, tensor, kBytes, 5);
  caller->synchronize(nullptr);
  EXPECT_TRUE(all_are(seen, 4));
}

TEST_F(CudaDouble, BlockingStreamsDoNotWaitForEachOther) {
  const CUstream writer = caller->create_stream();
  const CUstream reader = caller->create_stream();
  double_.hold(writer, 1);
  caller->write(writer, tensor, kBytes, 4);
  const ConstBytes seen = caller->read(reader, tensor, kBytes);
  caller->synchronize(reader);
  double_.hold(writer, 0);
  EXPECT_TRUE(all_are(seen, cuda_double::kPoison));
  EXPECT_THAT(double_.take_findings(), ::testing::HasSubstr("unordered"));
}

// The write has ended when the read begins, but the program did not order them.
TEST_F(CudaDouble, FindsUnorderedWorkThatRunsInOrder) {
  const CUstream writer = caller->create_stream();
  const CUstream reader = caller->create_stream();
  double_.hold(reader, 1);
  caller->write(writer, tensor, kBytes, 4);
  const ConstBytes seen = caller->read(reader, tensor, kBytes);
  caller->synchronize(writer);
  double_.hold(reader, 0);
  caller->synchronize(reader);
  EXPECT_TRUE(all_are(seen, 4));
  EXPECT_THAT(double_.take_findings(), ::testing::HasSubstr("unordered"));
}

TEST_F(CudaDouble, HostFunctionMayNotCallTheDriver) {
  struct Call {
    const CudaApi& api;
    CUresult result = CUDA_SUCCESS;
  } call{driver->api()};
  const auto function = [](void* data) {
    auto* inside = static_cast<Call*>(data);
    int version = 0;
    inside->result = inside->api.cuDriverGetVersion(&version);
  };
  ASSERT_EQ(driver->api().cuLaunchHostFunc(nullptr, function, &call), CUDA_SUCCESS);
  caller->synchronize(nullptr);
  EXPECT_EQ(call.result, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_THAT(double_.take_findings(), ::testing::HasSubstr("call inside: a host function called cuDriverGetVersion"));
}

TEST_F(CudaDouble, CallsNeedACurrentContext) {
  CUcontext popped = nullptr;
  ASSERT_EQ(driver->api().cuCtxPopCurrent(&popped), CUDA_SUCCESS);
  CUevent event = nullptr;
  EXPECT_EQ(driver->api().cuEventCreate(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(driver->api().cuStreamQuery(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(driver->api().cuCtxPushCurrent(popped), CUDA_SUCCESS);
}

TEST_F(CudaDouble, FreedMemoryInUseIsFound) {
  const CUstream kernels = caller->create_stream();
  double_.hold(kernels, 1);
  {
    const auto slot = *device->allocate_pinned(kBytes);
    const auto ready = *device->create_event();
    caller->write(kernels, tensor, kBytes, 4);
    ASSERT_TRUE(device->record(number_of(kernels), *ready).ok());
    ASSERT_TRUE(stream->wait_for(*ready).ok());
    ASSERT_TRUE(stream->copy_to_host(Address{tensor}, slot->bytes()).ok());
  }
  double_.hold(kernels, 0);
  ASSERT_TRUE(stream->notify(*completions, 1).ok());
  await(*completions, 1);
  const std::string findings = double_.take_findings();
  EXPECT_THAT(findings, ::testing::HasSubstr("freed early: pinned memory"));
  EXPECT_THAT(findings, ::testing::HasSubstr("event early"));
}

}  // namespace
}  // namespace gleaner::device
