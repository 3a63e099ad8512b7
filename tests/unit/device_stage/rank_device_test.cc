// Tests of the checks by which a rank refuses memory that is not where the program says. Driver::load() finds the
// double, since the fixture has loaded it: the dynamic linker knows loaded libraries by their names.
#include "comm-lib/runtime/rank_device.h"

#include "tests/unit/device_stage/rig.h"

namespace gleaner::runtime {
namespace {

using device::Caller;
using device::CUdeviceptr;
using device::CUstream;
using device::IsError;
using device::number_of;
using device::Place;

class RankDeviceTest : public device::StageOnGpu {
 protected:
  // The events of requests end with the rank's device.
  void TearDown() override { caller->synchronize(producer); }

  static std::span<std::byte> span_of(CUdeviceptr memory) { return {reinterpret_cast<std::byte*>(memory), 64}; }
  absl::Status begin(const std::optional<DeviceStream>& gpu_stream, MutableBytes input, MutableBytes output) {
    request = {};
    request.input = input;
    request.output = output;
    return rank_device.begin(gpu_stream, request, marks);
  }
  absl::Status begin(const std::optional<DeviceStream>& gpu_stream, CUdeviceptr input, CUdeviceptr output) {
    return begin(gpu_stream, span_of(input), span_of(output));
  }

  const DeviceStream on_gpu_0{Place{0}, number_of(producer)};
  RankDevice rank_device;
  Request request;
  std::unique_ptr<DeviceMarks> marks;
};

TEST_F(RankDeviceTest, MarksTheStreamOfTheProgram) {
  double_.hold(producer, 1);
  const CUdeviceptr memory = make_tensor(producer, std::vector<std::byte>(64));
  ASSERT_EQ(begin(on_gpu_0, memory, memory), absl::OkStatus());
  ASSERT_NE(marks, nullptr);
  EXPECT_EQ(request.access.device->info().place, Place{0});
  EXPECT_TRUE(request.access.ready->is_recorded());
  EXPECT_FALSE(*request.access.ready->is_done());
  EXPECT_FALSE(request.access.copied->is_recorded());
  EXPECT_EQ(rank_device.hold(*marks, std::nullopt), absl::OkStatus()) << "there is no copy to wait for";
  double_.hold(producer, 0);
  caller->synchronize(producer);
  EXPECT_TRUE(*request.access.ready->is_done());
}

TEST_F(RankDeviceTest, StreamsWaitForTheResult) {
  const CUdeviceptr memory = make_tensor(producer, std::vector<std::byte>(64));
  ASSERT_EQ(begin(on_gpu_0, memory, memory), absl::OkStatus());
  const auto copies = *request.access.device->create_stream(device::Priority::kHigh);
  const auto slot = *request.access.device->allocate_pinned(64);
  ASSERT_TRUE(copies->wait_for(*request.access.ready).ok());
  ASSERT_TRUE(copies->copy_to_device(slot->bytes(), device::Address{memory}).ok());
  ASSERT_TRUE(copies->record(*request.access.copied).ok());
  EXPECT_EQ(rank_device.hold(*marks, std::nullopt), absl::OkStatus());
  caller->read(producer, memory, 64);
  EXPECT_EQ(rank_device.hold(*marks, number_of(consumer)), absl::OkStatus());
  caller->read(consumer, memory, 64);
  caller->synchronize(producer);
  caller->synchronize(consumer);
}

TEST_F(RankDeviceTest, RefusesMemoryOfAnotherPlace) {
  const CUdeviceptr here = caller->allocate(64);
  Caller on_gpu_1(driver, 1);
  const CUdeviceptr there = on_gpu_1.allocate(64);
  std::vector<std::byte> host(64);
  EXPECT_THAT(begin(on_gpu_0, here, there), IsError(absl::StatusCode::kInvalidArgument, "on GPU 1, not on GPU 0"));
  EXPECT_THAT(begin(on_gpu_0, there, here), IsError(absl::StatusCode::kInvalidArgument, "on GPU 1, not on GPU 0"));
  EXPECT_THAT(begin(on_gpu_0, span_of(here), host), IsError(absl::StatusCode::kInvalidArgument, "on the host, not on"));
  EXPECT_EQ(begin(on_gpu_0, caller->allocate_managed(64), here), absl::OkStatus());
  EXPECT_THAT(begin(std::nullopt, here, here),
              IsError(absl::StatusCode::kInvalidArgument, "use gln_push_pull_on_stream()"));
  EXPECT_EQ(begin(std::nullopt, host, host), absl::OkStatus());
}

TEST_F(RankDeviceTest, RefusesASecondGpu) {
  EXPECT_THAT(begin(DeviceStream{Place{-1}}, 0, 0), IsError(absl::StatusCode::kInvalidArgument, "number of a GPU"));
  EXPECT_FALSE(begin(DeviceStream{Place{7}}, 0, 0).ok());
  const CUdeviceptr here = caller->allocate(64);
  ASSERT_EQ(begin(on_gpu_0, here, here), absl::OkStatus()) << "a GPU that can't be opened is not the rank's";
  EXPECT_THAT(begin(DeviceStream{Place{1}}, here, here), IsError(absl::StatusCode::kInvalidArgument, "one GPU"));
}

TEST_F(RankDeviceTest, MemoryOfTheHostNeedsNoDriver) {
  std::vector<std::byte> host(64);
  double_.fail_next("cuInit", device::CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(begin(std::nullopt, host, host), absl::OkStatus());
  EXPECT_EQ(request.access.device, nullptr);
  EXPECT_FALSE(begin(on_gpu_0, host, host).ok()) << "the first use of a GPU loads the driver";
}

}  // namespace
}  // namespace gleaner::runtime
