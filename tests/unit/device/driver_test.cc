#include "comm-lib/device/driver.h"

#include <cstdlib>

#include "tests/unit/device/gpus.h"

namespace gleaner::device {
namespace {

using absl::StatusCode;

class DriverTest : public ::testing::Test {
 protected:
  ~DriverTest() override { double_.reset(0, 2, kVersion); }
  absl::Status load(int devices, int version) {
    double_.reset(0, devices, version);
    return Driver::load(CUDA_DOUBLE).status();
  }
  const Double double_;
};

TEST_F(DriverTest, LackOfADriverIsNotFound) {
  EXPECT_THAT(Driver::load("libcuda-of-no-machine.so.1").status(), IsError(StatusCode::kNotFound, "no CUDA driver"));
}

TEST_F(DriverTest, RefusesAnotherLibrary) {
  EXPECT_THAT(Driver::load("libm.so.6").status(), IsError(StatusCode::kFailedPrecondition, "is no CUDA driver"));
}

TEST_F(DriverTest, OldDriverIsNamedWithTheOldestGoodOne) {
  const absl::Status status = load(2, 10020);
  EXPECT_THAT(status, IsError(StatusCode::kFailedPrecondition, "supports CUDA 10.2"));
  EXPECT_THAT(status, IsError(StatusCode::kFailedPrecondition, "for CUDA 11.0 or later; update the driver"));
}

TEST_F(DriverTest, LoadsDriversWithoutProcAddress) {
  ASSERT_TRUE(load(2, 11040).ok());
  EXPECT_EQ((*Driver::load(CUDA_DOUBLE))->version(), 11040);
}

TEST_F(DriverTest, LackOfDevicesIsNotFound) {
  EXPECT_THAT(load(0, kVersion), IsError(StatusCode::kNotFound, "CUDA_VISIBLE_DEVICES"));
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_THAT(load(2, kVersion), IsError(StatusCode::kNotFound, "CUDA_VISIBLE_DEVICES"));
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(DriverTest, UnknownDeviceIsInvalid) {
  ASSERT_TRUE(load(2, kVersion).ok());
  const auto driver = *Driver::load(CUDA_DOUBLE);
  EXPECT_EQ(*driver->count_devices(), 2);
  EXPECT_THAT(open_cuda_device(driver, 2).status(), IsError(StatusCode::kInvalidArgument, "no GPU of that number"));
}

TEST_F(DriverTest, CudaBeforeAForkIsExplained) {
  double_.fail_next("cuInit", CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_THAT(Driver::load(CUDA_DOUBLE).status(), IsError(StatusCode::kFailedPrecondition, "spawn or forkserver"));
}

TEST_F(DriverTest, UnknownErrorHasItsNumber) {
  double_.fail_next("cuInit", 12345);
  EXPECT_THAT(Driver::load(CUDA_DOUBLE).status(), IsError(StatusCode::kUnavailable, "12345"));
}

}  // namespace
}  // namespace gleaner::device
