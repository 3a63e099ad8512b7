// Tests that messages take the time of processors, as in LogP.
#include "common/netsim/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/collective/algorithms.h"
#include "common/netsim/plan_run.h"
#include "common/netsim/schedule_run.h"
#include "common/plan/partitioner.h"
#include "tests/unit/netsim/networks.h"

namespace gleaner::netsim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Work = Processors::Work;

constexpr double kOverhead = 6e-6;
constexpr double kPathLatency = 5e-6;
constexpr double kCall = 2 * kOverhead;  // the vector is handed over, and the result handed back

topology::Network star_with_overheads(uint32_t hosts) {
  return make_network(*topology::star(
      hosts, {.bits_per_second = 1e15, .latency_seconds = kPathLatency / 2, .overhead_seconds = kOverhead}));
}

double run_seconds(const collective::Spec& spec, const collective::Collective& collective, Partitions partitions) {
  const auto schedule = collective::make_schedule(spec, collective);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  const auto run =
      run_schedule(*schedule, star_with_overheads(schedule->ranks), identity(schedule->ranks), partitions, {});
  EXPECT_TRUE(run.ok()) << run.status();
  return run->seconds;
}

TEST(Processors, ArrivedMessagesGoFirst) {
  const topology::Network net = star_with_overheads(1);
  Processors processors(net.topology, {0});
  std::vector<uint64_t> order;
  const auto note = [&](Processors::Done done) {
    order.push_back(done.id);
    return absl::OkStatus();
  };
  for (const uint64_t message : {1, 2}) EXPECT_TRUE(processors.give(0, {Work::kSend, message}, 0, note).ok());
  EXPECT_TRUE(processors.give(0, {Work::kReceive, 3}, 0, note).ok());
  EXPECT_TRUE(processors.advance(0.9 * kOverhead, note).ok());
  EXPECT_THAT(order, IsEmpty());
  EXPECT_TRUE(processors.advance(10 * kOverhead, note).ok());
  EXPECT_THAT(order, ElementsAre(1, 3, 2));
}

// Cost models and searches time schedules of vectors without bytes.
TEST(Processors, VectorsWithoutBytesTakeLatencies) {
  const double seconds = run_seconds({.algorithm = "ring"}, {4, collective::Postcondition::kAllReduce}, uncut(0));
  EXPECT_NEAR(seconds, kCall + 6 * (2 * kOverhead + kPathLatency), 1e-9);
}

TEST(Processors, RootReceivesOneMessageAfterTheOther) {
  const double seconds = run_seconds({.algorithm = "direct"}, {8, collective::Postcondition::kGather}, uncut(8));
  EXPECT_NEAR(seconds, kCall + kOverhead + kPathLatency + 7 * kOverhead, 1e-9);
}

TEST(Processors, RootSendsOneMessageAfterTheOther) {
  const double seconds = run_seconds({.algorithm = "direct"}, {8, collective::Postcondition::kScatter}, uncut(8));
  EXPECT_NEAR(seconds, kCall + 7 * kOverhead + kPathLatency + kOverhead, 1e-9);
}

TEST(Processors, EachHopOfARingTakesTwoOverheads) {
  const double seconds = run_seconds({.algorithm = "ring"}, {4, collective::Postcondition::kAllReduce}, uncut(16));
  EXPECT_NEAR(seconds, kCall + 6 * (2 * kOverhead + kPathLatency), 1e-9);
}

// The element is in one chunk of the two trees' sixteen, so a rank has four messages at most: two from its children,
// and then one each way.
TEST(Processors, MessagesWithoutElementsAreNotSent) {
  const collective::Collective all_reduce{4, collective::Postcondition::kAllReduce};
  Partitions one = uncut(4);
  const double with_empty = run_seconds({.algorithm = "double-tree"}, all_reduce, one);
  one.element_bytes = 4;
  const double seconds = run_seconds({.algorithm = "double-tree"}, all_reduce, one);
  EXPECT_LT(seconds, 0.4 * with_empty);
  EXPECT_GE(seconds, kCall + 4 * (2 * kOverhead + kPathLatency));
}

// The owner of the only partition receives three contributions, and sends three results.
TEST(Processors, OwnersTakeTimeForEachMessage) {
  plan::Fleet fleet{std::vector<double>(4, 1e15), {}};
  const auto plan = plan::make_plan(fleet, {{.name = "t", .elements = 1}}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto run = run_plan(*plan, star_with_overheads(4), identity(4), {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_NEAR(run->seconds, kCall + 2 * kPathLatency + (1 + 3 + 3 + 1) * kOverhead, 1e-9);
}

}  // namespace
}  // namespace gleaner::netsim
