// Tests what the driver, or this build, refuses, and the mistakes of an order that the double finds.
#include "comm-lib/device/kernels/kernels.h"

#include <unistd.h>

#include <array>

#include "tests/sanitizers.h"
#include "tests/unit/device/gpus.h"
#include "tests/unit/device_kernels/double_image.h"

namespace gleaner::device {
namespace {

using absl::StatusCode;

class KernelsOnGpus : public Gpus {
 protected:
  static constexpr size_t kElements = kBytes / sizeof(float);
  std::unique_ptr<Kernels> load() const { return *Kernels::load(device.get(), kDoubleImage); }
  Address make_tensor() const { return Address{caller->allocate(kBytes)}; }
  void finish() {
    ASSERT_TRUE(stream->notify(*completions, 1).ok());
    await(*completions, 1);
  }
};

TEST_F(KernelsOnGpus, BuildWithoutNvccIsExplained) {
  const absl::Status status = Kernels::load(device.get(), {}).status();
  EXPECT_THAT(status, IsError(StatusCode::kUnimplemented, "found no nvcc"));
  EXPECT_THAT(status, IsError(StatusCode::kUnimplemented, "-DGLEANER_NVCC="));
}

TEST_F(KernelsOnGpus, OldDriverIsExplained) {
  double_.fail_next("cuModuleLoadData", CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_THAT(Kernels::load(device.get(), kDoubleImage).status(),
              IsError(StatusCode::kFailedPrecondition, "update the driver, or build Gleaner with"));
}

TEST_F(KernelsOnGpus, MissingKernelIsNamed) {
  double_.fail_next("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND);
  EXPECT_THAT(Kernels::load(device.get(), kDoubleImage).status(),
              IsError(StatusCode::kUnavailable, "find the kernel gleaner_sum_float32"));
}

TEST_F(KernelsOnGpus, LaunchThatFailsIsExplained) {
  const auto kernels = load();
  double_.fail_next("cuLaunchKernel", CUDA_ERROR_OUT_OF_MEMORY);
  const Address tensor = make_tensor();
  EXPECT_THAT(kernels->sum(*stream, DataType::kFloat32, std::array{tensor}, tensor, kElements),
              IsError(StatusCode::kResourceExhausted, "can't launch a kernel that sums"));
  finish();
}

TEST_F(KernelsOnGpus, StreamOfAnotherDeviceIsInvalid) {
  const auto kernels = load();
  const auto other = *open_cuda_device(driver, 1);
  const auto other_stream = *other->create_stream(Priority::kNormal);
  const Address tensor = make_tensor();
  EXPECT_THAT(kernels->sum(*other_stream, DataType::kFloat32, std::array{tensor}, tensor, kElements),
              IsError(StatusCode::kInvalidArgument, "expected a stream of GPU 0"));
  finish();
}

TEST_F(KernelsOnGpus, UnknownTypesAreInvalid) {
  const auto kernels = load();
  const Address tensor = make_tensor();
  EXPECT_THAT(kernels->sum(*stream, DataType::kFloat64, DataType::kFloat32, std::array{tensor}, tensor, kElements, 1),
              IsError(StatusCode::kInvalidArgument, "can't sum fp64 to fp32; sum to fp64"));
  finish();
}

TEST_F(KernelsOnGpus, FreedSourceFailsTheGpu) {
  const auto kernels = load();
  const Address tensor = make_tensor();
  ASSERT_TRUE(kernels->sum(*stream, DataType::kFloat32, std::array{Address{4096}}, tensor, kElements).ok());
  while (stream->check().ok()) usleep(100);
  EXPECT_THAT(stream->check(), IsError(StatusCode::kDataLoss, "compute-sanitizer"));
}

TEST_F(KernelsOnGpus, DoubleFindsASumBeforeItsSource) {
  if (kSanitized) GTEST_SKIP() << "the sum races with the write, which TSan reports, too";
  const auto kernels = load();
  const Address source = make_tensor();
  const Address result = make_tensor();
  const CUstream producer = caller->create_stream();
  caller->write(producer, static_cast<CUdeviceptr>(source), kBytes, 1);
  ASSERT_TRUE(kernels->sum(*stream, DataType::kFloat32, std::array{source}, result, kElements).ok());
  finish();
  caller->synchronize(producer);
  EXPECT_THAT(double_.take_findings(), ::testing::HasSubstr("unordered: the read of device memory"));
}

TEST_F(KernelsOnGpus, DoubleFindsAReadBeforeTheSum) {
  if (kSanitized) GTEST_SKIP() << "the read races with the sum, which TSan reports, too";
  const auto kernels = load();
  const Address tensor = make_tensor();
  const auto slot = *device->allocate_pinned(kBytes);
  const auto other = *device->create_stream(Priority::kNormal);
  ASSERT_TRUE(kernels->sum(*stream, DataType::kFloat32, std::array{tensor}, tensor, kElements).ok());
  ASSERT_TRUE(other->copy_to_host(tensor, slot->bytes()).ok());
  finish();
  ASSERT_TRUE(other->notify(*completions, 2).ok());
  await(*completions, 1);
  EXPECT_THAT(double_.take_findings(), ::testing::HasSubstr("does not wait for the write to device memory"));
}

TEST_F(KernelsOnGpus, DoubleFindsKernelsThatEndBeforeTheirWork) {
  auto kernels = load();
  const Address tensor = make_tensor();
  double_.hold(*cuda_stream_of(*stream, Place{0}), 1);
  ASSERT_TRUE(kernels->sum(*stream, DataType::kFloat32, std::array{tensor}, tensor, kElements).ok());
  kernels.reset();
  double_.hold(*cuda_stream_of(*stream, Place{0}), 0);
  finish();
  EXPECT_THAT(double_.take_findings(), ::testing::HasSubstr("unloaded early"));
}

}  // namespace
}  // namespace gleaner::device
