#include "common/transport/rdma/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/env.h"
#include "common/transport/rdma/transport.h"

namespace gleaner::transport::rdma {
namespace {

using ::testing::HasSubstr;

TEST(DeviceChoice, NamesPortsAndGids) {
  EXPECT_TRUE(DeviceChoice::parse("")->empty());
  const auto choices = DeviceChoice::parse("mlx5_0,mlx5_1:2,mlx5_2:1:3").value();
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_EQ(choices[0].device, "mlx5_0");
  EXPECT_EQ(choices[0].port, 0);
  EXPECT_EQ(choices[0].gid_index, -1);
  EXPECT_EQ(choices[1].port, 2);
  EXPECT_EQ(choices[2].gid_index, 3);
}

TEST(DeviceChoice, WrongChoicesNameTheReason) {
  for (const char* wrong :
       {",", "mlx5_0,", ":1", "mlx5_0:0", "mlx5_0:256", "mlx5_0:x", "mlx5_0:1:-1", "mlx5_0:1:2:3"}) {
    const auto choices = DeviceChoice::parse(wrong);
    EXPECT_TRUE(absl::IsInvalidArgument(choices.status())) << wrong;
    EXPECT_THAT(std::string(choices.status().message()), HasSubstr("mlx5_0:1:3"));
  }
}

// On machines without an RDMA device, this error is all that users see of the transport.
TEST(Device, NoDeviceHasAReason) {
  if (usable_ports({}).ok()) GTEST_SKIP() << "this machine has an RDMA device";
  const SystemEnv system(LogOptions{"test", LogLevel::kOff});
  const auto made = Transport::create(system.env(), {}, nullptr, nullptr);
  EXPECT_FALSE(made.ok());
  EXPECT_THAT(std::string(made.status().message()), ::testing::AnyOf(HasSubstr("no RDMA device"), HasSubstr("port ")));
}

}  // namespace
}  // namespace gleaner::transport::rdma
