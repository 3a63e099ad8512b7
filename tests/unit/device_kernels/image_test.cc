// Tests nvcc's output, where the build found nvcc.
#include "comm-lib/device/kernels/image.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "comm-lib/device/kernels/sum_launch.h"

namespace gleaner::device {
namespace {

class KernelImage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (image_.empty()) GTEST_SKIP() << "built without nvcc";
  }
  bool has(const std::string& text) const { return image_.find(text) != std::string_view::npos; }

  const std::string_view image_{reinterpret_cast<const char*>(kernel_image().data()), kernel_image().size()};
};

TEST_F(KernelImage, HasPtxOfEveryKernel) {
  for (const SumKernel& kernel : kSumKernels) {
    EXPECT_TRUE(has(std::string(".entry ") + kernel.name + "(")) << kernel.name;
  }
}

TEST_F(KernelImage, AddsAndDividesWithoutContraction) {
  for (const char* instruction : {"add.rn.f32", "add.rn.f64", "div.rn.f32", "div.rn.f64", "cvt.rn.f16.f32"}) {
    EXPECT_TRUE(has(instruction)) << instruction;
  }
  for (const char* instruction : {"fma.rn", "mad.rn", ".ftz", ".approx", "add.f32", "add.f64"}) {
    EXPECT_FALSE(has(instruction)) << instruction;
  }
}

// A thread that reads elements one by one takes several times as long.
TEST_F(KernelImage, LoadsVectors) { EXPECT_TRUE(has("ld.v4.f32") || has("ld.v4.u32") || has("ld.global.v4")); }

}  // namespace
}  // namespace gleaner::device
