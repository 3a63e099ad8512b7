// Tests each error of Topology::make(), and the indexes of nodes and channels.
#include "common/topology/topology.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/unit/topology/errors.h"

namespace gleaner::topology {
namespace {

using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Link link(uint32_t a, uint32_t b) { return {a, b, 1e9, 1e9, 1e-6}; }

// Returns `count` hosts named h0, h1, ...
std::vector<Host> hosts(uint32_t count) {
  std::vector<Host> result;
  for (uint32_t i = 0; i < count; ++i) result.push_back({absl::StrCat("h", i), {}});
  return result;
}

std::string error_of(std::vector<Host> hosts, std::vector<Switch> switches, std::vector<Link> links) {
  return error_of(Topology::make(std::move(hosts), std::move(switches), std::move(links)));
}

// Returns the error of two hosts that this link joins.
std::string error_of(const Link& only) { return error_of(hosts(2), {}, {only}); }

TEST(Topology, NodesAndChannels) {
  const auto made = Topology::make(hosts(2), {{"s"}}, {{0, 2, 1e9, 2e9, 1e-6}, {2, 1, 3e9, 4e9, 2e-6}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->host_count(), 2u);
  EXPECT_EQ(made->node_count(), 3u);
  EXPECT_EQ(made->channel_count(), 4u);
  EXPECT_TRUE(made->is_host(1));
  EXPECT_FALSE(made->is_host(2));
  EXPECT_EQ(made->name(1), "h1");
  EXPECT_EQ(made->name(2), "s");
  EXPECT_EQ(made->from(0), 0u);
  EXPECT_EQ(made->to(0), 2u);
  EXPECT_EQ(made->from(3), 1u);
  EXPECT_EQ(made->to(3), 2u);
  EXPECT_EQ(made->bits_per_second(0), 1e9);
  EXPECT_EQ(made->bits_per_second(1), 2e9);
  EXPECT_EQ(made->latency_seconds(3), 2e-6);
  ASSERT_EQ(made->neighbours(2).size(), 2u);
  EXPECT_EQ(made->neighbours(2)[0].node, 0u);
  EXPECT_EQ(made->neighbours(2)[0].channel, 1u);
  EXPECT_EQ(made->neighbours(2)[1].node, 1u);
  EXPECT_EQ(made->neighbours(2)[1].channel, 2u);
}

TEST(Topology, OneHostAlone) {
  EXPECT_EQ(error_of(hosts(1), {}, {}), "");
  EXPECT_EQ(error_of(hosts(1), {{"s"}}, {}), "");
}

TEST(Topology, RejectsNames) {
  EXPECT_THAT(error_of({}, {{"s"}}, {}), HasSubstr("no host"));
  EXPECT_THAT(error_of({{"a"}, {""}}, {}, {link(0, 1)}), HasSubstr("host 1 has no name"));
  EXPECT_THAT(error_of({{"a"}}, {{""}}, {}), HasSubstr("switch 0 has no name"));
  EXPECT_THAT(error_of({{"a"}, {"a"}}, {}, {link(0, 1)}), HasSubstr("'a' occurs twice"));
  EXPECT_THAT(error_of({{"a"}}, {{"a"}}, {link(0, 1)}), HasSubstr("'a' occurs twice"));
  EXPECT_THAT(error_of({{"a\nb"}}, {}, {}), HasSubstr("the name of host 0"));
  EXPECT_THAT(error_of({{"a"}}, {{"\xff"}}, {}), HasSubstr("the name of switch 0"));
}

TEST(Topology, RejectsLinks) {
  EXPECT_EQ(error_of(link(0, 1)), "");
  EXPECT_THAT(error_of(link(0, 2)), HasSubstr("link 0 ends at node 2; there are 2"));
  EXPECT_THAT(error_of(link(7, 1)), HasSubstr("link 0 ends at node 7"));
  EXPECT_THAT(error_of(link(1, 1)), HasSubstr("same node at both ends"));
  for (const double bandwidth : {0., -1., kInfinity, kNan}) {
    EXPECT_THAT(error_of({0, 1, bandwidth, 1, 0}), HasSubstr("bits per second above 0")) << bandwidth;
    EXPECT_THAT(error_of({0, 1, 1, bandwidth, 0}), HasSubstr("bits per second above 0")) << bandwidth;
  }
  for (const double latency : {-1e-9, kInfinity, kNan}) {
    EXPECT_THAT(error_of({0, 1, 1, 1, latency}), HasSubstr("give 0 or more")) << latency;
  }
  EXPECT_EQ(error_of({0, 1, 1, 1, 0}), "") << "a latency of 0 is valid";
  for (const double overhead : {-1e-9, kInfinity, kNan}) {
    EXPECT_THAT(topology::error_of(Topology::make({{"a", {}, overhead}}, {}, {})), HasSubstr("'a' has the overhead"));
  }
  EXPECT_EQ(error_of(hosts(2), {}, {link(0, 1), link(1, 0)}), "") << "links may be parallel";
}

TEST(Topology, RejectsHostsOutOfReach) {
  EXPECT_THAT(error_of(hosts(3), {}, {link(0, 1)}), HasSubstr("from host 'h0' to host 'h2'"));
  EXPECT_THAT(error_of(hosts(2), {{"s"}, {"t"}}, {link(0, 2), link(1, 3)}), HasSubstr("from host 'h0' to host 'h1'"));
  EXPECT_EQ(error_of(hosts(2), {{"s"}, {"t"}, {"spare"}}, {link(0, 2), link(1, 3), link(2, 3)}), "");
}

TEST(Topology, HostsForwardOnlyWithoutSwitches) {
  EXPECT_EQ(error_of(hosts(3), {}, {link(0, 1), link(1, 2)}), "");
  EXPECT_THAT(error_of(hosts(3), {{"s"}}, {link(0, 3), link(1, 3), link(1, 2)}),
              HasSubstr("from host 'h0' to host 'h2'"));
  // h0 reaches both other hosts, which do not reach each other.
  EXPECT_THAT(error_of(hosts(3), {{"s"}, {"t"}}, {link(0, 3), link(0, 4), link(1, 3), link(2, 4)}),
              HasSubstr("from host 'h1' to host 'h2'"));
  EXPECT_EQ(error_of(hosts(3), {{"s"}, {"t"}}, {link(0, 3), link(0, 4), link(1, 3), link(2, 4), link(1, 2)}), "");
}

// Every two of three hosts share one of three separate switches.
TEST(Topology, SeparateSwitchesMayJoinAllHosts) {
  EXPECT_EQ(error_of(hosts(3), {{"s"}, {"t"}, {"u"}},
                     {link(0, 3), link(1, 3), link(1, 4), link(2, 4), link(0, 5), link(2, 5)}),
            "");
}

TEST(Topology, RejectsMoreThanItsLimits) {
  EXPECT_THAT(error_of(std::vector<Host>(kMaxHosts + 1), {}, {}), HasSubstr("65537 hosts; at most 65536"));
  EXPECT_THAT(error_of(hosts(1), std::vector<Switch>(kMaxSwitches + 1), {}),
              HasSubstr("32769 switches; at most 32768"));
  std::vector<Link> chain;
  for (uint32_t host = 0; host + 1 < 20000; ++host) chain.push_back(link(host, host + 1));
  EXPECT_THAT(error_of(hosts(20000), {}, chain), HasSubstr("is at most 268435456"));
}

TEST(Topology, OnlySwitch) {
  const auto made = Topology::make(hosts(3), {{"s"}}, {link(3, 0), link(1, 3), link(2, 3), link(2, 3)});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(made->only_switch(0));
  EXPECT_EQ(made->only_switch(0)->node, 3u);
  EXPECT_EQ(made->only_switch(0)->channel, 1u);
  EXPECT_TRUE(made->only_switch(1));
  EXPECT_FALSE(made->only_switch(2)) << "it has two links";
  const auto pair = Topology::make(hosts(2), {}, {link(0, 1)});
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_FALSE(pair->only_switch(0)) << "its link leads to a host";
}

}  // namespace
}  // namespace gleaner::topology
