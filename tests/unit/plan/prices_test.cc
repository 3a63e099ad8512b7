#include "common/plan/prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::plan {
namespace {

using testing::HasSubstr;

// The prices of Luo §6.1.10. A switch of 32 ports costs 21077 $; four 25 Gbit/s ports share one of 100 Gbit/s.
constexpr double kWorker = 4117, kGpu = 699, kPHub = 8407, kPort100 = 21077.0 / 32, kPort25 = kPort100 / 4;

Prices baseline() { return {.worker = kWorker + 4 * kGpu, .nic = 795, .switch_port = kPort100, .cable = 94}; }

Prices with_phub(double uplinks) {
  return {.worker = kWorker + 4 * kGpu,
          .summer = kPHub,
          .summer_ports = 20,
          .nic = 260,
          .switch_port = kPort25,
          .cable = 31.25,
          .uplinks = uplinks};
}

TEST(Prices, PortPaysForUplinks) {
  EXPECT_DOUBLE_EQ(baseline().port(), (795 + kPort100 + 94) + (4 * kPort100 + 2 * 94));
  EXPECT_DOUBLE_EQ(with_phub(0.5).port(), (260 + kPort25 + 31.25) + 0.5 * (4 * kPort25 + 2 * 31.25));
  EXPECT_DOUBLE_EQ(with_phub(0).port(), 260 + kPort25 + 31.25);
}

TEST(Prices, RackSharesItsSummer) {
  const Prices prices = with_phub(1);
  EXPECT_DOUBLE_EQ(prices.total(44, 1), 44 * (kWorker + 4 * kGpu + prices.port()) + kPHub + 20 * prices.port());
}

// Luo Table 6.3. Its cost per worker does not follow from the stated prices, so this test takes it from the first
// column: with equal throughput, the PHub's cost falls with the oversubscription. The prices of a V100 and of a cheap
// worker, which the text does not state, follow from the baseline. The other six entries are then determined, and with
// them the gains: 25.2 % (caption 25 %, text 26 %), 6.3 % and 36.1 %.
TEST(Prices, Table63) {
  const double printed[4][3] = {
      {46.11, 14.57, 60.41}, {55.19, 15.30, 77.21}, {57.71, 15.49, 82.24}, {59.03, 15.58, 84.95}};
  const double phub_slowdown = 0.9937;  // of the throughput of a worker, from its column of future GPUs
  const Prices prices = baseline();
  const double base = prices.total(1, 0), throughput = printed[0][0] * base / 1000;
  const double change[3] = {0, throughput * 1000 / printed[0][1] - base, throughput * 1000 / printed[0][2] - base};
  EXPECT_GT(change[1], 0);  // V100 cards cost more
  EXPECT_LT(change[2], 0);
  for (int row = 0; row < 4; ++row) {
    const double speed = throughput * (row == 0 ? 1 : phub_slowdown);
    const double cost = speed * 1000 / printed[row][0];
    for (int column = 0; column < 3; ++column) {
      EXPECT_NEAR(throughput_per_1000(cost + change[column], 1 / speed), printed[row][column],
                  0.0003 * printed[row][column])
          << row << ", " << column;
    }
  }
  const double gains[3] = {25.2, 6.3, 36.1};
  for (int column = 0; column < 3; ++column) {
    EXPECT_NEAR(100 * (printed[2][column] / printed[0][column] - 1), gains[column], 0.05);
  }
}

TEST(Prices, StepsAndThroughput) {
  Prices hourly{.worker = 3, .summer = 1, .hours = 1};
  EXPECT_DOUBLE_EQ(hourly.total(8, 4), 28);
  EXPECT_DOUBLE_EQ(hourly.of_step(28, 0.5), 28 * 0.5 / 3600);
  EXPECT_DOUBLE_EQ(throughput_per_1000(2000, 0.25), 2);
}

TEST(Prices, MistakesAreNamed) {
  EXPECT_TRUE(validate(baseline()).ok());
  EXPECT_THAT(validate(Prices{}).message(), HasSubstr("cost nothing"));
  EXPECT_THAT(validate(Prices{.worker = -1}).message(), HasSubstr("price of a worker is -1"));
  EXPECT_THAT(validate(Prices{.worker = 1, .uplinks = 2}).message(), HasSubstr("uplinks is 2"));
  EXPECT_THAT(validate(Prices{.worker = 1, .hours = 0}).message(), HasSubstr("hours is 0"));
  EXPECT_THAT(validate(Prices{.worker = 1, .summer_ports = 0}).message(), HasSubstr("summer_ports is 0"));
}

}  // namespace
}  // namespace gleaner::plan
