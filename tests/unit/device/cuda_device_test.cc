// Tests what only GPUs have: contexts, failures of the driver and of kernels, kinds of memory.
#include "comm-lib/device/cuda_device.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "comm-lib/device/event_pool.h"
#include "comm-lib/device/locate.h"
#include "tests/unit/device/gpus.h"

namespace gleaner::device {
namespace {

using absl::StatusCode;

class CudaDevice : public Gpus {
 protected:
  std::unique_ptr<Event> make_event() { return *device->create_event(); }
  MemoryKind kind_of(const void* address) {
    return locate(driver.get(), Address{reinterpret_cast<uint64_t>(address)})->kind;
  }
};

TEST_F(CudaDevice, DescribesItself) {
  const std::string sysfs = ::testing::TempDir() + "/device_sysfs_" + std::to_string(getpid());
  std::filesystem::create_directories(sysfs + "/bus/pci/devices/0000:1b:00.0");
  std::ofstream(sysfs + "/bus/pci/devices/0000:1b:00.0/numa_node") << "3\n";
  const DeviceInfo info = (*open_cuda_device(driver, 1, sysfs))->info();
  EXPECT_EQ(info.place, Place{1});
  EXPECT_EQ(info.name, "Double of GPU 1");
  EXPECT_EQ(info.pci_bus_id, "0000:1b:00.0");
  EXPECT_EQ(info.numa_node, 3);
  EXPECT_FALSE(info.has_host_visible_memory);
  EXPECT_EQ((*open_cuda_device(driver, 0, sysfs))->info().numa_node, std::nullopt);
  std::filesystem::remove_all(sysfs);
}

TEST_F(CudaDevice, KeepsTheCurrentContext) {
  Caller on_gpu_1(driver, 1);
  const auto memory = *device->allocate_pinned(kBytes);
  const CUdeviceptr tensor = caller->allocate(kBytes);
  on_gpu_1.make_current();
  const auto event = make_event();
  EXPECT_TRUE(stream->copy_to_device(memory->bytes(), Address{tensor}).ok());
  EXPECT_TRUE(stream->record(*event).ok());
  EXPECT_TRUE(device->hold(CallerStream{}, *event).ok());
  EXPECT_TRUE(stream->notify(*completions, 1).ok());
  EXPECT_EQ(on_gpu_1.current_context(), on_gpu_1.context());
  await(*completions, 1);
}

TEST_F(CudaDevice, LackOfPinnedMemoryIsExplained) {
  double_.fail_next("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  const absl::Status status = device->allocate_pinned(1 << 20).status();
  EXPECT_THAT(status, IsError(StatusCode::kResourceExhausted, "pin 1048576 bytes of host memory"));
  EXPECT_THAT(status, IsError(StatusCode::kResourceExhausted, "raise the container's memory limit"));
}

TEST_F(CudaDevice, InvalidContextIsExplained) {
  double_.fail_next("cuStreamCreateWithPriority", CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_THAT(device->create_stream(Priority::kHigh).status(), IsError(StatusCode::kFailedPrecondition, "reset"));
}

TEST_F(CudaDevice, IllegalAddressEndsEverything) {
  const CUdeviceptr tensor = caller->allocate(kBytes);
  const CUstream kernels = caller->create_stream();
  const auto memory = *device->allocate_pinned(kBytes);
  const auto ready = make_event();
  double_.hold(kernels, 1);
  double_.fail_kernel(kernels, CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_TRUE(device->record(number_of(kernels), *ready).ok());
  ASSERT_TRUE(stream->wait_for(*ready).ok());
  ASSERT_TRUE(stream->copy_to_host(Address{tensor}, memory->bytes()).ok());
  ASSERT_TRUE(stream->notify(*completions, 1).ok());
  EXPECT_TRUE(stream->check().ok());

  double_.hold(kernels, 0);
  while (stream->check().ok()) usleep(100);
  EXPECT_THAT(stream->check(), IsError(StatusCode::kDataLoss, "compute-sanitizer"));
  EXPECT_THAT(ready->is_done().status(), IsError(StatusCode::kDataLoss, "compute-sanitizer"));
  EXPECT_THAT(stream->record(*ready), IsError(StatusCode::kDataLoss, "compute-sanitizer"));
  // The driver never tells the end of the copy, so the caller must ask by check().
  pollfd readable{completions->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, 0), 0);
  EXPECT_EQ(completions->pending(), 1);
}

TEST_F(CudaDevice, RefusedNotificationLeavesNothingPending) {
  double_.fail_next("cuLaunchHostFunc", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(stream->notify(*completions, 1).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(completions->pending(), 0);
}

TEST_F(CudaDevice, EventIsPendingBehindHeldWork) {
  const CUstream kernels = caller->create_stream();
  const CUdeviceptr tensor = caller->allocate(kBytes);
  double_.hold(kernels, 1);
  caller->write(kernels, tensor, kBytes, 1);
  const auto ready = make_event();
  ASSERT_TRUE(device->record(number_of(kernels), *ready).ok());
  EXPECT_FALSE(*ready->is_done());
  double_.hold(kernels, 0);
  caller->synchronize(kernels);
  EXPECT_TRUE(*ready->is_done());
  double_.fail_next("cuEventQuery", CUDA_ERROR_NOT_READY);
  EXPECT_FALSE(*ready->is_done());
}

TEST_F(CudaDevice, DestroyedStreamOfTheCallerIsInvalid) {
  const CUstream kernels = caller->create_stream();
  const auto event = make_event();
  ASSERT_TRUE(stream->record(*event).ok());
  caller->destroy(kernels);
  EXPECT_THAT(device->record(number_of(kernels), *event), IsError(StatusCode::kInvalidArgument, "was destroyed"));
  EXPECT_THAT(device->hold(number_of(kernels), *event), IsError(StatusCode::kInvalidArgument, "was destroyed"));
  ASSERT_TRUE(stream->notify(*completions, 1).ok());
  await(*completions, 1);
}

TEST_F(CudaDevice, StreamOfAnotherGpuIsInvalid) {
  Caller on_gpu_1(driver, 1);
  const CUstream kernels = on_gpu_1.create_stream();
  const auto event = make_event();
  EXPECT_THAT(device->record(number_of(kernels), *event), IsError(StatusCode::kInvalidArgument, "another GPU"));
}

TEST_F(CudaDevice, EventOfAnotherGpuIsInvalid) {
  const auto other = *open_cuda_device(driver, 1);
  const auto event = *other->create_event();
  EXPECT_THAT(stream->record(*event), IsError(StatusCode::kInvalidArgument, "an event of GPU 0; this one is of GPU 1"));
  EXPECT_THAT(stream->wait_for(*event), IsError(StatusCode::kInvalidArgument, "GPU 1"));
}

TEST_F(CudaDevice, CapturedGraphIsRefused) {
  const CUstream kernels = caller->create_stream();
  const auto event = make_event();
  ASSERT_TRUE(device->record(number_of(kernels), *event).ok());
  double_.capture(kernels, 1);
  EXPECT_THAT(device->record(number_of(kernels), *event), IsError(StatusCode::kFailedPrecondition, "CUDA graph"));
  EXPECT_THAT(device->hold(number_of(kernels), *event), IsError(StatusCode::kFailedPrecondition, "CUDA graph"));
  double_.capture(kernels, 0);
  EXPECT_TRUE(device->hold(number_of(kernels), *event).ok());
  caller->synchronize(kernels);
}

TEST_F(CudaDevice, UnknownAddressIsInvalid) {
  const auto memory = *device->allocate_pinned(kBytes);
  EXPECT_THAT(stream->copy_to_host(Address{4096}, memory->bytes()),
              IsError(StatusCode::kInvalidArgument, "the tensor is still alive"));
}

TEST_F(CudaDevice, LocatesMemory) {
  Caller on_gpu_1(driver, 1);
  int local = 0;
  const auto pinned = *device->allocate_pinned(kBytes);
  EXPECT_EQ(kind_of(&local), MemoryKind::kPageable);
  EXPECT_EQ(kind_of(pinned->bytes().data() + kBytes - 1), MemoryKind::kPinned);
  const Location managed = *locate(driver.get(), Address{on_gpu_1.allocate_managed(kBytes)});
  EXPECT_EQ(managed.kind, MemoryKind::kManaged);
  EXPECT_EQ(managed.place, Place{1});
  const Location on_device = *locate(driver.get(), Address{on_gpu_1.allocate(kBytes) + 10});
  EXPECT_EQ(on_device.kind, MemoryKind::kDevice);
  EXPECT_EQ(on_device.place, Place{1});
  EXPECT_EQ(locate(nullptr, Address{on_gpu_1.allocate(kBytes)})->kind, MemoryKind::kPageable);
}

TEST_F(CudaDevice, DoesNotWaitForTheLegacyStream) {
  const CUstream kernels = caller->create_stream();
  const CUdeviceptr tensor = caller->allocate(kBytes);
  const CUdeviceptr other = caller->allocate(kBytes);
  const auto memory = *device->allocate_pinned(kBytes);
  double_.hold(kernels, 1);
  caller->write(kernels, tensor, kBytes, 1);
  caller->write(nullptr, tensor, kBytes, 2);  // waits for the write above
  ASSERT_TRUE(stream->copy_to_host(Address{other}, memory->bytes()).ok());
  ASSERT_TRUE(stream->notify(*completions, 1).ok());
  await(*completions, 1);
  double_.hold(kernels, 0);
}

// The driver itself might hang or crash in a forked process.
TEST_F(CudaDevice, ForkedChildCallsNoDriver) {
  const auto event = make_event();
  const auto pinned = *device->allocate_pinned(kBytes);
  const pid_t child = fork();
  if (child == 0) {
    const auto is_refused = [](const absl::Status& status) {
      return status.code() == StatusCode::kFailedPrecondition &&
             absl::StrContains(status.message(), "was forked from process");
    };
    const bool all_refused =
        is_refused(stream->check()) && is_refused(stream->record(*event)) &&
        is_refused(device->record(CallerStream{}, *event)) && is_refused(driver->count_devices().status()) &&
        is_refused(open_cuda_device(driver, 0).status()) && is_refused(device->allocate_pinned(1).status()) &&
        is_refused(locate(driver.get(), Address{1}).status());
    stream.reset();
    device.reset();
    _exit(all_refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace gleaner::device
