#include "common/strategy/hiding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gleaner::strategy {
namespace {

constexpr double kBytes = 100e6, kCompute = 0.1;  // M/T is 8 Gbit/s

plan::Fleet fleet_of(uint32_t workers, uint32_t summers, double bits_per_second = 10e9) {
  plan::Fleet fleet;
  fleet.worker_bits_per_second.assign(workers, bits_per_second);
  fleet.summer_bits_per_second.assign(summers, bits_per_second);
  return fleet;
}

Hiding way(const plan::Fleet& fleet, const std::string& name, std::optional<plan::Prices> prices = {}) {
  const auto all = hide(fleet, kBytes, kCompute, prices);
  const auto found = std::ranges::find(*all, name, &Hiding::name);
  return found == all->end() ? Hiding{} : *found;
}

TEST(Hiding, PlacementsNeedTheirLoad) {
  const plan::Fleet fleet = fleet_of(8, 8);
  EXPECT_DOUBLE_EQ(way(fleet, "CC").server_bits_per_second, 7 * 8e9);
  EXPECT_DOUBLE_EQ(way(fleet, "CC").worker_bits_per_second, 8e9);
  EXPECT_DOUBLE_EQ(way(fleet, "CS").server_bits_per_second, 1.75 * 8e9);
  EXPECT_DOUBLE_EQ(way(fleet, "NCC").server_bits_per_second, 8 * 8e9);
  EXPECT_DOUBLE_EQ(way(fleet, "NCS").server_bits_per_second, 8e9);
  EXPECT_EQ(way(fleet, "NCS").summers, 8u);
  EXPECT_TRUE(way(fleet, "NCS").hidden);
  EXPECT_FALSE(way(fleet, "CS").hidden);
  EXPECT_DOUBLE_EQ(way(fleet, "CS").step_seconds, 1.75 * kBytes * 8 / 10e9);
}

// BytePS Eq. 6: between CS at k = 0 and NCS at k = n.
TEST(Hiding, SummersNeedLessWithEachMachine) {
  for (const uint32_t k : {0u, 2u, 8u}) {
    const double n = 8, load = 2 * n * (n - 1) / (n * n + k * n - 2 * k);
    EXPECT_NEAR(way(fleet_of(8, k), "summers").worker_bits_per_second, load * 8e9, 1e3) << k;
    EXPECT_NEAR(way(fleet_of(8, k), "summers").communication_seconds, load * kBytes * 8 / 10e9, 1e-9) << k;
  }
}

TEST(Hiding, SchedulesNeedTheirBusiestLink) {
  const plan::Fleet fleet = fleet_of(6, 0);
  EXPECT_NEAR(way(fleet, "ring").worker_bits_per_second, 10.0 / 6 * 8e9, 1e3);
  EXPECT_NEAR(way(fleet, "halving-doubling").worker_bits_per_second, 2.5 * 8e9, 1e3);
  EXPECT_EQ(way(fleet_of(8, 3), "ring").summers, 0u);
}

TEST(Hiding, PricesCountMachinesUsed) {
  const plan::Prices prices{.worker = 1000, .summer = 200, .nic = 10, .switch_port = 5, .cable = 1, .uplinks = 0};
  const Hiding ring = way(fleet_of(8, 4), "ring", prices), summers = way(fleet_of(8, 4), "summers", prices);
  EXPECT_DOUBLE_EQ(*ring.total_price, 8 * 1016);
  EXPECT_DOUBLE_EQ(*summers.total_price, 8 * 1016 + 4 * 216);
  EXPECT_DOUBLE_EQ(*ring.throughput_per_1000, 1000 / (*ring.total_price * ring.step_seconds));
  EXPECT_LT(summers.step_seconds, ring.step_seconds);
  EXPECT_FALSE(way(fleet_of(8, 4), "ring").total_price.has_value());
}

}  // namespace
}  // namespace gleaner::strategy
