#include "common/netsim/schedule_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "common/collective/algorithms.h"
#include "common/collective/blueconnect.h"
#include "common/collective/cost.h"
#include "common/collective/gather.h"
#include "common/collective/halving_doubling.h"
#include "common/collective/ring.h"
#include "common/ranks/hdrm.h"
#include "networks.h"
#include "tests/unit/collective/blueconnect_seconds.h"

namespace gleaner::netsim {
namespace {

using collective::OpKind;
using collective::Take;
using ::testing::HasSubstr;

constexpr double kBytes = 64 << 20;

RunResult run(const collective::Schedule& schedule, const topology::Network& net, std::vector<uint32_t> host_of = {},
              const Conditions& conditions = {}, double bytes = kBytes) {
  if (host_of.empty()) host_of = identity(schedule.ranks);
  const auto result = run_schedule(schedule, net, host_of, uncut(bytes), conditions);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

void expect_close(double seconds, double expected) { EXPECT_NEAR(seconds, expected, expected * 1e-3); }

class Ranks : public ::testing::TestWithParam<uint32_t> {};

// 2(n-1) steps of α + S/n·β each, with α of the two links of a path (Luo §5.2.1).
TEST_P(Ranks, RingOnAStar) {
  const uint32_t n = GetParam();
  const topology::Network net = make_network(*topology::star(n, gbit(10, 0, 5e-6)));
  const RunResult result = run(collective::ring(n), net);
  const double step = 10e-6 + kBytes / n * 8 / 10e9;
  expect_close(result.seconds, 2 * (n - 1) * step);
  ASSERT_EQ(result.steps.size(), 2 * (n - 1));
  for (const StepTime& at : result.steps) {
    expect_close(at.seconds, step);
    EXPECT_EQ(at.worst_link.flows, 1);
  }
}

class PowersOfTwo : public ::testing::TestWithParam<uint32_t> {};

// 2 log2(n) steps; all bytes of a step leave at once: 2 (α log2 n + (n-1)/n S β) (Luo §5.2.1).
TEST_P(PowersOfTwo, HalvingDoublingOnAStar) {
  const uint32_t n = GetParam();
  const topology::Network net = make_network(*topology::star(n, gbit(10, 0, 5e-6)));
  const RunResult result = run(collective::halving_doubling(n), net);
  expect_close(result.seconds, 2 * (std::countr_zero(n) * 10e-6 + (n - 1.0) / n * kBytes * 8 / 10e9));
}
INSTANTIATE_TEST_SUITE_P(Sizes, PowersOfTwo, ::testing::Values(2, 4, 8, 32, 64));

// Ranks do not wait for a step to begin. With three ranks of S bytes, rank 2 sends its half to rank 0 while rank 1
// hands its whole vector over: 1.5 S arrive, then rank 0 sends both halves, and at last the result to rank 1.
TEST(ScheduleRun, StepsOverlap) {
  const topology::Network net = make_network(*topology::star(3, gbit(10)));
  expect_close(run(collective::halving_doubling(3), net).seconds, (1.5 + 1 + 1) * kBytes * 8 / 10e9);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Ranks, ::testing::Values(2, 3, 8, 13, 64));

// The ring of an oversubscribed pair of racks is as slow as its slowest link. A ring that changes racks with each rank
// sends 4 flows over an uplink.
TEST(ScheduleRun, RingOnOversubscribedRacks) {
  const topology::Network net = make_network(*topology::racks(2, 4, gbit(10, 5)));
  const collective::Schedule ring = collective::ring(8);
  const double step = kBytes / 8 * 8 / 10e9;
  expect_close(run(ring, net).seconds, 14 * step * 2);
  const RunResult crossing = run(ring, net, {0, 4, 1, 5, 2, 6, 3, 7});
  expect_close(crossing.seconds, 14 * step * 8);
  EXPECT_EQ(crossing.steps[3].worst_link.flows, 4);
  const std::string from = net.topology.name(net.topology.from(crossing.steps[3].worst_link.channel));
  EXPECT_TRUE(from == "rack-0" || from == "rack-1" || from == "core") << from;
}

// BlueConnect §3, Eq. 6 and 7: stage 0 runs inside the racks. A rack's uplink has half the bandwidth of a host, and the
// ranks of a rack share it in stage 1, for which each has 1 / p0 of the vector.
TEST(ScheduleRun, BlueConnectOnRacks) {
  constexpr double kUplink = 5e9;
  const topology::Network net = make_network(*topology::racks(3, 4, gbit(10, kUplink / 1e9)));
  const auto schedule = collective::blueconnect({4, 3});
  ASSERT_TRUE(schedule.ok());
  expect_close(run(*schedule, net).seconds, collective::blueconnect_seconds({4, 3}, kBytes, 0, {10e9, kUplink}));
}

// The first half of a ring's messages are partial sums, which for fp16 travel as fp32.
TEST(ScheduleRun, PartialSumsAreWider) {
  const topology::Network net = make_network(*topology::star(8, gbit(10)));
  Partitions partitions = uncut(kBytes);
  partitions.partial_width = 2;
  const auto seconds = [&](const collective::Schedule& schedule) {
    return run_schedule(schedule, net, identity(8), partitions, {})->seconds;
  };
  expect_close(seconds(collective::ring(8)), (7 * 2 + 7) * kBytes / 8 * 8 / 10e9);
  expect_close(seconds(collective::gather(8)), 7 * kBytes * 8 / 10e9);
}

// The simulator and the cost model find the same paths, so as many flows on the worst link of each step. Their times
// differ, since the steps of different ranks overlap in the simulation.
TEST(ScheduleRun, AgreesWithTheCostModel) {
  const topology::Network net = make_network(*topology::bigraph(2, 4, gbit(10, 0, 1e-6)));
  const collective::Schedule schedule = collective::halving_doubling(8);
  const std::vector<uint32_t> map = identity(8);
  const auto cost = collective::cost(schedule, net, map, static_cast<uint64_t>(kBytes));
  ASSERT_TRUE(cost.ok()) << cost.status();
  const RunResult result = run(schedule, net);
  EXPECT_NEAR(result.seconds / cost->seconds, 1, 0.2);
  for (size_t step = 0; step < result.steps.size(); ++step) {
    EXPECT_EQ(result.steps[step].worst_link.flows, cost->steps[step].flows) << step;
  }
}

// In this rank map no two flows share a link (EFLOPS §V-B, Algorithm 1), so that halving-doubling is as fast as on a
// star. With one rank after the other, flows do.
TEST(ScheduleRun, RankMapAvoidsConflicts) {
  const topology::Network net = make_network(*topology::bigraph(2, 4, gbit(10)));
  const collective::Schedule schedule = collective::halving_doubling(8);
  const auto map = ranks::hdrm(net.topology, 8);
  ASSERT_TRUE(map.ok()) << map.status();
  const double at_best = 2 * 7.0 / 8 * kBytes * 8 / 10e9;
  expect_close(run(schedule, net, *map).seconds, at_best);
  EXPECT_GT(run(schedule, net).seconds, at_best * 1.1);
}

TEST(ScheduleRun, LostHostEndsTheRun) {
  const topology::Network net = make_network(*topology::star(4, gbit(10)));
  const auto result =
      run_schedule(collective::ring(4), net, identity(4), uncut(kBytes),
                   {.failures = {{.link = link_between(net.topology, "host-2", "switch-0"), .seconds = 1e-3}}});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(result.status().message(), HasSubstr("'host-2'"));
}

// A ring in which each hop changes sides, two each way. With a seed that spreads them over both paths, each step takes
// one unit; after the failure of a path it takes two.
TEST(ScheduleRun, FailedLinkSlowsTheRun) {
  const topology::Network net = make_network(*two_paths());
  const double unit = kBytes / 4 * 8 / 8e9;
  for (uint64_t seed = 0;; ++seed) {
    ASSERT_LT(seed, 1000) << "no seed spreads the flows";
    Conditions conditions = {.seed = seed};
    if (run(collective::ring(4), net, {0, 2, 1, 3}, conditions).seconds > 6.5 * unit) continue;
    conditions.failures = {{.link = link_between(net.topology, "middle-0", "right"), .seconds = 3 * unit}};
    expect_close(run(collective::ring(4), net, {0, 2, 1, 3}, conditions).seconds, (3 + 3 * 2) * unit);
    return;
  }
}

TEST(ScheduleRun, BackgroundSlowsTheRing) {
  const topology::Network net = make_network(*topology::star(5, gbit(10)));
  const Conditions conditions = {.background = {{.from = 4, .to = 2, .bits_per_second = 4e9}}};
  expect_close(run(collective::ring(4), net, {}, conditions).seconds, 6 * kBytes / 4 * 8 / 6e9);
}

// Messages between two ranks follow each other, so that a pipeline works: rank 1 passes each chunk on while it receives
// the next.
TEST(ScheduleRun, ChunksArePipelined) {
  collective::Schedule schedule{{.ranks = 3}, "line", 4, 5, {}, {}};
  schedule.programs.resize(3);
  for (uint32_t chunk = 0; chunk < 4; ++chunk) {
    schedule.programs[0].push_back({OpKind::kSend, Take::kCopy, 1, chunk, {chunk, 1}});
    schedule.programs[1].push_back({OpKind::kReceive, Take::kCopy, 0, chunk, {chunk, 1}});
    schedule.programs[1].push_back({OpKind::kSend, Take::kCopy, 2, chunk + 1, {chunk, 1}});
    schedule.programs[2].push_back({OpKind::kReceive, Take::kCopy, 1, chunk + 1, {chunk, 1}});
  }
  const topology::Network net = make_network(*topology::star(3, gbit(10)));
  expect_close(run(schedule, net).seconds, 5 * kBytes / 4 * 8 / 10e9);
}

TEST(ScheduleRun, SeedDecides) {
  const topology::Network net = make_network(*topology::fat_tree(4, gbit(10, 0, 1e-6)));
  const collective::Schedule schedule = collective::halving_doubling(16);
  std::vector<double> seconds;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const RunResult once = run(schedule, net, {}, {.seed = seed}), again = run(schedule, net, {}, {.seed = seed});
    EXPECT_EQ(once.seconds, again.seconds) << seed;
    EXPECT_EQ(once.events, again.events) << seed;
    seconds.push_back(once.seconds);
  }
  std::ranges::sort(seconds);
  EXPECT_LT(seconds.front(), seconds.back()) << "no seed differs from another";
}

TEST(ScheduleRun, StepsAddUp) {
  const topology::Network net = make_network(*topology::fat_tree(4, gbit(10, 0, 1e-6)));
  const RunResult result = run(collective::halving_doubling(16), net, {}, {.seed = 3});
  double sum = 0;
  for (const StepTime& step : result.steps) sum += step.seconds;
  EXPECT_NEAR(sum, result.seconds, 1e-9);
}

TEST(ScheduleRun, OneRankNeedsNoTime) {
  const topology::Network net = make_network(*topology::star(2, gbit(10)));
  EXPECT_EQ(run(collective::ring(1), net).seconds, 0);
}

TEST(ScheduleRun, WrongInputIsNamed) {
  const topology::Network net = make_network(*topology::star(2, gbit(10)));
  collective::Schedule schedule = collective::ring(2);
  const auto error = [&](const std::vector<uint32_t>& map) {
    return std::string(run_schedule(schedule, net, map, uncut(1), {}).status().message());
  };
  EXPECT_THAT(error({0}), HasSubstr("give one for each of 2"));
  EXPECT_THAT(error({0, 0}), HasSubstr("ranks 0 and 1 are at the same host, 'host-0'"));
  EXPECT_THAT(error({0, 2}), HasSubstr("rank 1 is at host 2; there are 2 hosts"));
  std::erase_if(schedule.programs[0], [](const auto& op) { return op.kind == OpKind::kSend; });
  EXPECT_THAT(error({0, 1}), HasSubstr("rank 1, operation"));
  schedule = collective::ring(2);
  for (auto& program : schedule.programs) std::swap(program[0], program[1]);
  EXPECT_THAT(error({0, 1}), HasSubstr("never ends: rank 0 waits in step 0 for a message from rank 1"));
}

}  // namespace
}  // namespace gleaner::netsim
