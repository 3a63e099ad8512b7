#include "common/collective/cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "common/collective/gather.h"
#include "common/collective/halving_doubling.h"
#include "common/collective/ring.h"
#include "common/topology/builders.h"
#include "tests/unit/collective/counts.h"

namespace gleaner::collective {
namespace {

using ::testing::HasSubstr;
using topology::Network;

constexpr double kBits = 100e9;    // bit/s of a host's link
constexpr double kLatency = 2e-6;  // of a path over two links
constexpr uint64_t kBytes = 100 << 20;

std::vector<uint32_t> identity(uint32_t ranks) {
  std::vector<uint32_t> host_of(ranks);
  std::iota(host_of.begin(), host_of.end(), 0);
  return host_of;
}

Cost cost_of(const Network& network, const Schedule& schedule) {
  return *cost(schedule, network, identity(schedule.ranks), kBytes);
}

TEST(Cost, RingOnStar) {
  for (const uint32_t n : tested_counts()) {
    const Network network = make_network(*topology::star(n, {kBits, 0, kLatency / 2}));
    const double expected = 2.0 * (n - 1) * (kLatency + kBytes * 8.0 / n / kBits);
    EXPECT_NEAR(cost_of(network, ring(n)).seconds, expected, expected * 1e-12) << n;
  }
}

TEST(Cost, HalvingDoublingOnStar) {
  for (uint32_t n = 1; n <= 128; n *= 2) {
    const Network network = make_network(*topology::star(n, {kBits, 0, kLatency / 2}));
    const double expected = 2 * std::countr_zero(n) * kLatency + 2.0 * (n - 1) / n * kBytes * 8 / kBits;
    EXPECT_NEAR(cost_of(network, halving_doubling(n)).seconds, expected, expected * 1e-12) << n;
  }
}

// Two racks of two hosts; all four messages of the step across use the uplinks, two each way.
TEST(Cost, SharedUplinkCarriesAllFlows) {
  const double uplink = 40e9;
  const Network network = make_network(*topology::racks(2, 2, {kBits, uplink, kLatency / 2}));
  const Cost cost = cost_of(network, halving_doubling(4));
  ASSERT_EQ(cost.steps.size(), 4u);
  EXPECT_NEAR(cost.steps[0].seconds, kLatency + kBytes * 8.0 / 2 / kBits, 1e-12);
  EXPECT_EQ(cost.steps[0].flows, 1u);
  EXPECT_NEAR(cost.steps[1].seconds, 2 * kLatency + 2 * kBytes * 8.0 / 4 / uplink, 1e-12);
  EXPECT_EQ(cost.steps[1].flows, 2u);
  const uint32_t worst = cost.steps[1].worst_channel;
  EXPECT_FALSE(network.topology.is_host(network.topology.from(worst)));
  EXPECT_FALSE(network.topology.is_host(network.topology.to(worst)));
  EXPECT_DOUBLE_EQ(network.topology.bits_per_second(worst), uplink);
}

// Partial sums of fp16 travel as fp32, complete ones as fp16: a ring sends n - 1 messages of each kind.
TEST(Cost, PartialSumsAreWider) {
  const Network network = make_network(*topology::star(8, {kBits, 0, 0}));
  const auto seconds = [&](const Schedule& schedule) {
    const auto patterns = *step_patterns(schedule, 2);
    return cost(schedule, patterns, network, identity(8), kBytes)->seconds;
  };
  const double byte = 8 / kBits;
  EXPECT_NEAR(seconds(ring(8)), (2 + 1) * 7.0 / 8 * kBytes * byte, 1e-9);
  EXPECT_NEAR(seconds(gather(8)), 7.0 * kBytes * byte, 1e-9) << "an all-gather has no partial sums";
  EXPECT_EQ(step_patterns(ring(8), 2)->size(), 2u);
}

TEST(Cost, PatternsOfSteps) {
  EXPECT_EQ(step_patterns(ring(16))->size(), 1u);
  EXPECT_EQ((*step_patterns(ring(16)))[0].steps.size(), 30u);
  const auto patterns = *step_patterns(halving_doubling(16));
  ASSERT_EQ(patterns.size(), 4u);
  EXPECT_EQ(patterns[0].steps, (std::vector<uint32_t>{0, 7}));
  EXPECT_EQ(patterns[0].transfers.size(), 16u);
  EXPECT_EQ(patterns[0].transfers[0], (Transfer{0, 1, 8, 1}));
}

// A ring across two racks crosses each uplink once if neighbours share a rack, and with every message if not. Then each
// message waits for the uplink; else only those on the uplink do, and the latency of the last one counts.
TEST(Cost, DependsOnRankMap) {
  const double uplink = 25e9;
  const Network network = make_network(*topology::racks(2, 4, {kBits, uplink, kLatency / 2}));
  const Cost near = cost_of(network, ring(8)), far = *cost(ring(8), network, {0, 4, 1, 5, 2, 6, 3, 7}, kBytes);
  EXPECT_NEAR(near.seconds, 14 * kBytes / 8.0 * 8 / uplink + 2 * kLatency, 1e-12);
  EXPECT_NEAR(far.seconds, 14 * (2 * kLatency + 4 * kBytes / 8.0 * 8 / uplink), 1e-12);
  for (const StepCost& step : far.steps) EXPECT_EQ(step.flows, 4u);
}

// Each chunk goes around nearly twice, and passes the slow hop between two hosts once or twice; no rank waits for that
// hop in every step (Luo §5.2.1).
TEST(Cost, RingCostsTheSumOfItsHops) {
  constexpr uint32_t kHosts = 7;
  std::vector<topology::Host> hosts;
  std::vector<topology::Link> links;
  for (uint32_t host = 0; host < kHosts; ++host) {
    hosts.push_back({std::string(1, static_cast<char>('a' + host)), {}});
    links.push_back({host, (host + 1) % kHosts, 1e12, 1e12, host == 3 ? 200e-6 : 20e-6});
  }
  const Network network = make_network(*topology::Topology::make(hosts, {}, links));
  EXPECT_NEAR(cost(ring(kHosts), network, identity(kHosts), 28)->seconds, 10 * 20e-6 + 2 * 200e-6, 1e-8);
}

// A rank may send in step 1 while others are still in step 0, but a channel carries what it was given first.
TEST(Cost, ChannelsCarryStepsInTurn) {
  Schedule chain{{.ranks = 3}};
  chain.chunks = 1;
  chain.steps = 2;
  chain.programs.resize(3);
  const auto send = [&](uint32_t from, uint32_t to, uint32_t step) {
    chain.programs[from].push_back({OpKind::kSend, Take::kReduce, to, step, {0, 1}});
    chain.programs[to].push_back({OpKind::kReceive, Take::kReduce, from, step, {0, 1}});
  };
  send(0, 2, 0);
  send(1, 2, 1);
  const Network network = make_network(*topology::star(3, {kBits, 0, 0}));
  EXPECT_NEAR(cost_of(network, chain).seconds, 2 * kBytes * 8.0 / kBits, 1e-12) << "both enter rank 2's link";
}

TEST(Cost, SendsComeFirstInAStep) {
  Schedule relay{{.ranks = 3}};
  relay.chunks = relay.steps = 1;
  relay.programs = {{{OpKind::kSend, Take::kCopy, 1, 0, {0, 1}}},
                    {{OpKind::kReceive, Take::kCopy, 0, 0, {0, 1}}, {OpKind::kSend, Take::kCopy, 2, 0, {0, 1}}},
                    {{OpKind::kReceive, Take::kCopy, 1, 0, {0, 1}}}};
  EXPECT_THAT(std::string(step_patterns(relay).status().message()),
              HasSubstr("rank 1 receives before it sends in step 0; give its sends an own step"));
}

TEST(Cost, MapMustFit) {
  const Network network = make_network(*topology::star(4, {}));
  const auto message = [&](const std::vector<uint32_t>& host_of) {
    return std::string(cost(ring(3), network, host_of, kBytes).status().message());
  };
  EXPECT_THAT(message({0, 1}), HasSubstr("the rank map has 2 ranks, the schedule 3"));
  EXPECT_THAT(message({0, 1, 4}), HasSubstr("rank 2 on host 4, but the topology has 4 hosts"));
  EXPECT_THAT(message({0, 1, 0}), HasSubstr("the ranks 0 and 2 on host 0"));
}

TEST(Cost, OneRankTakesNoTime) {
  const Network network = make_network(*topology::star(1, {}));
  EXPECT_EQ(cost_of(network, ring(1)).seconds, 0);
  EXPECT_TRUE(cost_of(network, ring(1)).steps.empty());
}

}  // namespace
}  // namespace gleaner::collective
