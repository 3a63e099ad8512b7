// Gpus is the fixture of tests over the double: two GPUs, and a caller on GPU 0.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tests/unit/device/caller.h"

namespace gleaner::device {

inline constexpr size_t kBytes = 5000;
inline constexpr int kVersion = 12040;

class Gpus : public ::testing::Test {
 protected:
  explicit Gpus(uint64_t seed = 1) {
    double_.reset(seed, 2, kVersion);
    driver = *Driver::load(CUDA_DOUBLE);
    caller = std::make_unique<Caller>(driver, 0);
    device = *open_cuda_device(driver, 0);
    stream = *device->create_stream(Priority::kNormal);
    completions = *Completions::create();
  }
  // A test that expects findings takes them.
  ~Gpus() override {
    stream.reset();
    device.reset();
    caller.reset();
    EXPECT_EQ(double_.take_findings(), "");
  }

  const Double double_;
  std::shared_ptr<const Driver> driver;
  std::unique_ptr<Caller> caller;
  std::unique_ptr<Device> device;
  std::unique_ptr<Completions> completions;
  std::unique_ptr<Stream> stream;
};

// Matches a status with this code, whose message has this text.
MATCHER_P2(IsError, code, text, "") { return arg.code() == code && absl::StrContains(arg.message(), text); }

}  // namespace gleaner::device
