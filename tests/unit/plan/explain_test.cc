// Tests of the figures of explain(), and that its sentences contain them.
#include "common/plan/explain.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/plan/fleets.h"

namespace gleaner::plan {
namespace {

using testing::HasSubstr;

Explanation explained(const Fleet& fleet, uint64_t elements = 25 << 20) {
  const auto plan = make_plan(fleet, {{"w", elements}}, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return explain(*plan);
}

TEST(Explain, EveryLinkBinds) {
  const Fleet fleet = even_fleet(8, 4, 25e9);
  const Explanation e = explained(fleet);
  EXPECT_EQ(e.limit, Limit::kAllLinks);
  EXPECT_EQ(e.stream_bytes, 100u << 20);
  EXPECT_DOUBLE_EQ(e.bound_seconds, bound_seconds(fleet, 100 << 20));
  EXPECT_DOUBLE_EQ(e.all_reduce_seconds, bound_seconds(even_fleet(8, 0, 25e9), 100 << 20));
  EXPECT_DOUBLE_EQ(e.one_more.bound_seconds, bound_seconds(even_fleet(8, 5, 25e9), 100 << 20));
  EXPECT_EQ(e.seconds, e.machines[e.binding].seconds);
  double share = 0;
  for (const MachineLoad& machine : e.machines) {
    share += machine.share;
    EXPECT_LE(machine.seconds, e.seconds);
    EXPECT_DOUBLE_EQ(machine.seconds, machine.traffic_bytes * 8 / machine.bits_per_second);
  }
  EXPECT_NEAR(share, 1, 1e-12);
  EXPECT_THAT(to_text(e), HasSubstr("all links together"));
  EXPECT_THAT(to_text(e), HasSubstr("summer/3"));
  EXPECT_THAT(to_text(e), HasSubstr("% less"));
  EXPECT_THAT(to_table(e), HasSubstr("worker/0 .. worker/7"));
}

TEST(Explain, TheSlowestWorkerBinds) {
  Fleet fleet = even_fleet(8, 8, 25e9);
  fleet.worker_bits_per_second[5] = 10e9;
  const Explanation e = explained(fleet);
  EXPECT_EQ(e.limit, Limit::kSlowestWorker);
  EXPECT_EQ(e.slowest_worker, 5u);
  EXPECT_EQ(e.binding, 5u);
  EXPECT_EQ(e.one_more.bound_seconds, e.bound_seconds);
  EXPECT_THAT(to_text(e), HasSubstr("worker/5 at 10 Gbit/s: its own gradient fills its link"));
  EXPECT_THAT(to_text(e), HasSubstr("no gain"));
  EXPECT_THAT(to_table(e), HasSubstr("worker/0 .. worker/4"));
}

TEST(Explain, AnAdditionalSummerHasTheMedianSpeed) {
  Fleet fleet = even_fleet(8, 3, 25e9);
  fleet.summer_bits_per_second = {1e9, 5e9, 40e9};
  EXPECT_EQ(explained(fleet).one_more.bits_per_second, 5e9);
  EXPECT_EQ(explained(even_fleet(4, 0, 3e9)).one_more.bits_per_second, 3e9);
}

TEST(Explain, NothingMoves) {
  const Explanation one = explained(even_fleet(1, 2, 1e9));
  EXPECT_EQ(one.limit, Limit::kNothingMoves);
  EXPECT_EQ(one.seconds, 0);
  EXPECT_THAT(to_text(one), HasSubstr("nothing has to move"));
  const Explanation empty = explained(even_fleet(4, 2, 1e9), 0);
  EXPECT_EQ(empty.limit, Limit::kNothingMoves);
  EXPECT_EQ(empty.partitions, 0u);
  EXPECT_THAT(to_table(empty), HasSubstr("nothing has to move"));
}

TEST(Explain, PartitionSizesHaveAReason) {
  const Explanation e = explained(even_fleet(8, 4, 0.2e9), 16 << 20);
  EXPECT_EQ(e.partition_sizes.largest, 32768u);
  EXPECT_EQ(e.partition_sizes.by_default, 32768u);
  EXPECT_NEAR(e.partition_sizes.limits.by_link, 35000, 1e-6);
  // 410 bytes of headers and work, and a bound of 112/88 of the time that a link takes for 64 MiB
  EXPECT_NEAR(e.partition_sizes.limits.by_stream, std::sqrt(410.0 * 112 / 88 * (64 << 20) / 16), 1);
  EXPECT_THAT(to_text(e), HasSubstr("34.18 KiB"));
  EXPECT_EQ(e.window_bytes, 16u * 32768);
  EXPECT_THAT(to_text(e), HasSubstr("512.00 KiB on the way (21 ms"));
}

}  // namespace
}  // namespace gleaner::plan
