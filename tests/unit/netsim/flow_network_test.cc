#include "common/netsim/flow_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "networks.h"

namespace gleaner::netsim {
namespace {

using ::testing::HasSubstr;
constexpr double kGigabyte = 1e9;  // takes 1 s at 8 Gbit/s

// Runs the network until nothing is left to wait for. Returns the time at which each message arrived.
std::map<uint64_t, double> run(FlowNetwork& network) {
  std::map<uint64_t, double> times;
  std::vector<uint64_t> arrived;
  for (;;) {
    const absl::StatusOr<bool> more = network.advance(arrived);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return times;
    for (const uint64_t id : arrived) times[id] = network.now();
    arrived.clear();
  }
}

FlowNetwork make(const topology::Network& net, const Conditions& conditions = {}) {
  absl::StatusOr<FlowNetwork> network = FlowNetwork::make(net, conditions);
  EXPECT_TRUE(network.ok()) << network.status();
  return *std::move(network);
}

TEST(FlowNetwork, LoneMessageTakesLatencyAndBytes) {
  const topology::Network net = make_network(*topology::star(2, gbit(8, 0, 0.25)));
  FlowNetwork network = make(net);
  ASSERT_TRUE(network.send(7, network.connect(0, 1), kGigabyte).ok());
  EXPECT_NEAR(run(network).at(7), 1.5, 1e-9);
}

// Two flows into one host share its link until the shorter one has left.
TEST(FlowNetwork, TwoFlowsShareALink) {
  const topology::Network net = make_network(*topology::star(3, gbit(8)));
  FlowNetwork network = make(net);
  ASSERT_TRUE(network.send(0, network.connect(0, 2), 1 * kGigabyte).ok());
  ASSERT_TRUE(network.send(1, network.connect(1, 2), 3 * kGigabyte).ok());
  const auto times = run(network);
  EXPECT_NEAR(times.at(0), 2, 1e-9);
  EXPECT_NEAR(times.at(1), 4, 1e-9);
  EXPECT_EQ(network.events(), 3) << "both begin, one ends, the other ends";
}

// A message that has entered the window is not overtaken.
TEST(FlowNetwork, WindowKeepsItsOrder) {
  const topology::Network net = make_network(*topology::star(2, gbit(8)));
  FlowNetwork network = make(net);
  const uint32_t connection = network.connect(0, 1, 1, 2 * kGigabyte);
  for (uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(network.send(id, connection, kGigabyte, 1).ok());
  ASSERT_TRUE(network.send(3, connection, kGigabyte, 0).ok());
  const auto times = run(network);
  EXPECT_NEAR(times.at(1), 2, 1e-9);
  EXPECT_NEAR(times.at(3), 3, 1e-9);
  EXPECT_NEAR(times.at(2), 4, 1e-9);
}

TEST(FlowNetwork, AdvancesToATime) {
  const topology::Network net = make_network(*topology::star(2, gbit(8)));
  FlowNetwork network = make(net);
  std::vector<uint64_t> arrived;
  ASSERT_TRUE(network.send(0, network.connect(0, 1), kGigabyte).ok());
  EXPECT_TRUE(*network.advance(arrived, 0.25));
  EXPECT_EQ(network.now(), 0.25);
  EXPECT_TRUE(arrived.empty());
  EXPECT_NEAR(run(network).at(0), 1, 1e-9);
  EXPECT_FALSE(*network.advance(arrived));
}

// Messages of one connection follow each other.
TEST(FlowNetwork, MessagesKeepTheirOrder) {
  const topology::Network net = make_network(*topology::star(2, gbit(8)));
  FlowNetwork network = make(net);
  const uint32_t connection = network.connect(0, 1);
  ASSERT_TRUE(network.send(0, connection, 3 * kGigabyte).ok());
  ASSERT_TRUE(network.send(1, connection, 0).ok());
  ASSERT_TRUE(network.send(2, connection, 1 * kGigabyte).ok());
  const auto times = run(network);
  EXPECT_NEAR(times.at(0), 3, 1e-9);
  EXPECT_NEAR(times.at(1), 3, 1e-9);
  EXPECT_NEAR(times.at(2), 4, 1e-9);
}

// Message 1 has begun to leave, so message 3 overtakes only message 2.
TEST(FlowNetwork, MessagesOvertakeByOrder) {
  const topology::Network net = make_network(*topology::star(2, gbit(8)));
  FlowNetwork network = make(net);
  const uint32_t connection = network.connect(0, 1);
  ASSERT_TRUE(network.send(1, connection, kGigabyte, 5).ok());
  ASSERT_TRUE(network.send(2, connection, kGigabyte, 5).ok());
  ASSERT_TRUE(network.send(3, connection, kGigabyte, 4).ok());
  ASSERT_TRUE(network.send(4, connection, kGigabyte, 5).ok());
  const auto times = run(network);
  EXPECT_NEAR(times.at(1), 1, 1e-9);
  EXPECT_NEAR(times.at(3), 2, 1e-9);
  EXPECT_NEAR(times.at(2), 3, 1e-9);
  EXPECT_NEAR(times.at(4), 4, 1e-9);
}

TEST(FlowNetwork, WeightsShareALink) {
  const topology::Network net = make_network(*topology::star(3, gbit(8)));
  FlowNetwork network = make(net);
  ASSERT_TRUE(network.send(0, network.connect(0, 2, 1), 1 * kGigabyte).ok());
  ASSERT_TRUE(network.send(1, network.connect(1, 2, 3), 3 * kGigabyte).ok());
  for (const auto& [id, seconds] : run(network)) EXPECT_NEAR(seconds, 4, 1e-9);
}

TEST(FlowNetwork, DirectionsDoNotShare) {
  const topology::Network net = make_network(*topology::star(2, gbit(8)));
  FlowNetwork network = make(net);
  ASSERT_TRUE(network.send(0, network.connect(0, 1), kGigabyte).ok());
  ASSERT_TRUE(network.send(1, network.connect(1, 0), kGigabyte).ok());
  for (const auto& [id, seconds] : run(network)) EXPECT_NEAR(seconds, 1, 1e-9);
}

// A message leaves its link to others when its last byte has left, although it arrives only a latency later.
TEST(FlowNetwork, LatencyDoesNotHoldTheLink) {
  const topology::Network net = make_network(*topology::star(2, gbit(8, 0, 5)));
  FlowNetwork network = make(net);
  const uint32_t connection = network.connect(0, 1);
  ASSERT_TRUE(network.send(0, connection, kGigabyte).ok());
  ASSERT_TRUE(network.send(1, connection, 2 * kGigabyte).ok());
  const auto times = run(network);
  EXPECT_NEAR(times.at(0), 11, 1e-9);
  EXPECT_NEAR(times.at(1), 13, 1e-9);
}

// Hosts of one rack send to those of the other over an uplink that carries one of the four at full speed.
TEST(FlowNetwork, OversubscribedRacks) {
  const topology::Network net = make_network(*topology::racks(2, 4, gbit(8, 8)));
  FlowNetwork network = make(net);
  for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(network.send(i, network.connect(i, 4 + i), kGigabyte).ok());
  for (const auto& [id, seconds] : run(network)) EXPECT_NEAR(seconds, 4, 1e-9) << id;
}

TEST(FlowNetwork, BackgroundTakesItsDemandAtMost) {
  const topology::Network net = make_network(*topology::star(3, gbit(8)));
  FlowNetwork network = make(net, {.background = {{.from = 1, .to = 2, .bits_per_second = 2e9}}});
  ASSERT_TRUE(network.send(0, network.connect(0, 2), kGigabyte).ok());
  EXPECT_NEAR(run(network).at(0), 8.0 / 6, 1e-9);
}

TEST(FlowNetwork, BackgroundTakesItsFairShareAtMost) {
  const topology::Network net = make_network(*topology::star(3, gbit(8)));
  FlowNetwork network = make(net, {.background = {{.from = 1, .to = 2, .bits_per_second = 7e9}}});
  ASSERT_TRUE(network.send(0, network.connect(0, 2), kGigabyte).ok());
  EXPECT_NEAR(run(network).at(0), 2, 1e-9);
}

// Two connections take different paths, chosen by a seed that the test looks for. When a link of one path fails, both
// share the other.
TEST(FlowNetwork, FailedLinkMovesItsFlows) {
  const topology::Network net = make_network(*two_paths());
  const uint32_t link = link_between(net.topology, "left", "middle-0");
  for (uint64_t seed = 0;; ++seed) {
    ASSERT_LT(seed, 1000) << "no seed chooses two paths";
    FlowNetwork network = make(net, {.seed = seed, .failures = {{.link = link, .seconds = 0.5}}});
    const auto over_link = [&](uint64_t id, uint32_t from, uint32_t to) {
      const auto channels = network.send(id, network.connect(from, to), kGigabyte);
      EXPECT_TRUE(channels.ok());
      return std::ranges::find(*channels, 2 * link) != channels->end();
    };
    const bool first = over_link(0, 0, 2), second = over_link(1, 1, 3);
    if (first == second) continue;
    for (const auto& [id, seconds] : run(network)) EXPECT_NEAR(seconds, 0.5 + 1, 1e-9) << id;
    return;
  }
}

// A connection that has sent over a link takes another path after the link's failure. One of the two links is on the
// connection's first path.
TEST(FlowNetwork, IdleConnectionsAvoidFailedLinks) {
  const topology::Network net = make_network(*two_paths());
  for (const std::string lost : {"middle-0", "middle-1"}) {
    const std::string other = lost == "middle-0" ? "middle-1" : "middle-0";
    const uint32_t lost_link = link_between(net.topology, "left", lost);
    FlowNetwork network = make(net, {.failures = {{.link = lost_link, .seconds = 0.5},
                                                  {.link = link_between(net.topology, other, "right"), .seconds = 2}}});
    const uint32_t connection = network.connect(0, 2);
    ASSERT_TRUE(network.send(0, connection, 0.1 * kGigabyte).ok());
    ASSERT_TRUE(network.send(1, network.connect(1, 0), kGigabyte).ok());
    run(network);
    const auto channels = network.send(2, connection, 3 * kGigabyte);
    ASSERT_TRUE(channels.ok());
    EXPECT_EQ(std::ranges::find(*channels, 2 * lost_link), channels->end());
    std::vector<uint64_t> arrived;
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = network.advance(arrived);
    EXPECT_EQ(more.status().code(), absl::StatusCode::kUnavailable) << "at 2 s the other path fails, too";
  }
}

TEST(FlowNetwork, LostHostsAreNamed) {
  const topology::Network net = make_network(*topology::star(3, gbit(8)));
  FlowNetwork network =
      make(net, {.failures = {{.link = link_between(net.topology, "host-1", "switch-0"), .seconds = 0.5}}});
  ASSERT_TRUE(network.send(0, network.connect(0, 1), kGigabyte).ok());
  std::vector<uint64_t> arrived;
  const absl::StatusOr<bool> more = network.advance(arrived);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(more.status().message(), HasSubstr("from 0.5 s on no path leads from host 'host-0' to host 'host-1'"));
}

// A link that no message needs may fail.
TEST(FlowNetwork, UnusedLinkFails) {
  const topology::Network net = make_network(*topology::star(3, gbit(8)));
  FlowNetwork network =
      make(net, {.failures = {{.link = link_between(net.topology, "host-2", "switch-0"), .seconds = 0.5}}});
  ASSERT_TRUE(network.send(0, network.connect(0, 1), kGigabyte).ok());
  EXPECT_NEAR(run(network).at(0), 1, 1e-9);
}

TEST(FlowNetwork, ConditionsOutOfRangeAreRefused) {
  const topology::Network net = make_network(*topology::star(2, gbit(8)));
  const auto error = [&](const Conditions& conditions) {
    return std::string(FlowNetwork::make(net, conditions).status().message());
  };
  EXPECT_THAT(error({.background = {{0, 2, 1e9}}}), HasSubstr("two different hosts below 2"));
  EXPECT_THAT(error({.background = {{0, 0, 1e9}}}), HasSubstr("two different hosts below 2"));
  EXPECT_THAT(error({.background = {{0, 1, 0}}}), HasSubstr("bits per second above 0"));
  EXPECT_THAT(error({.failures = {{2, 0}}}), HasSubstr("there are 2 links"));
  EXPECT_THAT(error({.failures = {{0, -1}}}), HasSubstr("0 or more"));
}

}  // namespace
}  // namespace gleaner::netsim
