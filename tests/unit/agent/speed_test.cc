// Tests of choose_speed(), which chooses among several statements about a NIC's speed.
#include "agent/probe/speed.h"

#include <gmock/gmock.h>

namespace gleaner::probe {
namespace {

using api::SpeedSource;

TEST(ChooseSpeed, TakesTheFirstSourceThatHasASpeed) {
  struct Case {
    SpeedClaims claims;
    double expected;
    SpeedSource source;
    const char* reason;
  };
  for (const Case& c : {
           Case{{.flag = 1e9, .label = "2Gbit", .sysfs = 3e9, .driver = "ixgbe", .measured = 4e9},
                1e9,
                SpeedSource::kFlag,
                "Flag"},
           Case{
               {.label = "2Gbit", .sysfs = 3e9, .driver = "ixgbe", .measured = 4e9}, 2e9, SpeedSource::kLabel, "Label"},
           Case{{.sysfs = 3e9, .driver = "ixgbe", .measured = 4e9}, 3e9, SpeedSource::kSysfs, "Sysfs"},
           Case{{.measured = 4e9}, 4e9, SpeedSource::kMeasured, "Measured"},
           Case{{}, 0, SpeedSource::kUnknown, "Unknown"},
       }) {
    const Speed speed = choose_speed(c.claims);
    EXPECT_EQ(speed.bits_per_second, c.expected) << c.reason;
    EXPECT_EQ(speed.source, c.source) << c.reason;
    EXPECT_EQ(speed.reason, c.reason);
    EXPECT_FALSE(speed.doubtful) << c.reason;
    EXPECT_NE(speed.message, "");
  }
}

TEST(ChooseSpeed, NoSourceExceedsTheSpeedOfTheLink) {
  for (SpeedClaims claims : {SpeedClaims{.flag = 40e9}, SpeedClaims{.label = "40Gbit"}}) {
    claims.sysfs = 25e9;
    claims.driver = "mlx5_core";
    const Speed speed = choose_speed(claims);
    EXPECT_EQ(speed.bits_per_second, 25e9);
    EXPECT_EQ(speed.source, SpeedSource::kSysfs);
    EXPECT_EQ(speed.reason, "ClaimAboveLink");
    EXPECT_TRUE(speed.doubtful);
  }
}

TEST(ChooseSpeed, ALabelOverridesTheSpeedOfVirtualDevices) {
  for (const char* driver : {"virtio_net", "hv_netvsc", "vmxnet3", "ena", "gve", ""}) {
    const Speed speed = choose_speed({.label = "40Gbit", .sysfs = 10e9, .driver = driver});
    EXPECT_EQ(speed.bits_per_second, 40e9) << driver;
    EXPECT_EQ(speed.source, SpeedSource::kLabel) << driver;
  }
}

TEST(ChooseSpeed, AMalformedLabelIsIgnoredAndReported) {
  for (const char* label : {"fast", "-1Gbit", "0", "25GB/s"}) {
    const Speed speed = choose_speed({.label = label, .sysfs = 10e9, .driver = "ixgbe"});
    EXPECT_EQ(speed.bits_per_second, 10e9) << label;
    EXPECT_EQ(speed.reason, "BadLabel") << label;
    EXPECT_TRUE(speed.doubtful) << label;
    EXPECT_THAT(speed.message, testing::HasSubstr("gleaner.dev/bandwidth"));
  }
}

}  // namespace
}  // namespace gleaner::probe
