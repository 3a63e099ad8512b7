#include "common/plan/all_reduce_bound.h"

#include <numeric>
#include <random>

#include "common/plan/model.h"
#include "common/plan/uplinks.h"
#include "common/topology/builders.h"
#include "fleets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gleaner::plan {
namespace {

using ::testing::ElementsAre;
using topology::Topology;

constexpr double kBytes = 1e9;

// Hosts 0, 1, ... are the members.
AllReduceBound bound_of(const Topology& topology, uint32_t workers, uint32_t summers = 0) {
  std::vector<uint32_t> host_of(workers + summers);
  std::iota(host_of.begin(), host_of.end(), 0);
  return all_reduce_bound(topology, host_of, workers, kBytes);
}

double seconds(const Topology& topology, uint32_t workers, uint32_t summers = 0) {
  return bound_of(topology, workers, summers).seconds;
}

// A link with this bandwidth each way.
topology::Link link(uint32_t a, uint32_t b, double gbit) { return {a, b, gbit * kGbit, gbit * kGbit, 0}; }

std::vector<topology::Host> hosts_of(size_t count) {
  std::vector<topology::Host> hosts;
  for (size_t i = 0; i < count; ++i) hosts.push_back({"host-" + std::to_string(i), {}});
  return hosts;
}

Topology star_with(const Fleet& fleet) {
  const uint32_t members = fleet.n() + fleet.k();
  std::vector<topology::Link> links;
  for (uint32_t i = 0; i < members; ++i) links.push_back(link(i, members, fleet.bits_per_second(i) / kGbit));
  return *Topology::make(hosts_of(members), {{"switch"}}, links);
}

// Racks of random sizes below switches at random places of a tree; hosts of racks are shuffled.
Topology random_tree(std::mt19937_64& random, uint32_t hosts) {
  const auto pick = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  const auto speed = [&] { return 1.0 + pick(40); };
  const uint32_t switches = 1 + pick(5);
  std::vector<topology::Switch> names;
  std::vector<topology::Link> links;
  for (uint32_t i = 0; i < switches; ++i) {
    names.push_back({"switch-" + std::to_string(i)});
    if (i > 0) links.push_back(link(hosts + i, hosts + pick(i), 2 * speed()));
  }
  for (uint32_t host = 0; host < hosts; ++host) links.push_back(link(host, hosts + pick(switches), speed()));
  return *Topology::make(hosts_of(hosts), names, links);
}

// Each rack of two hosts has 10 Gbit/s to one spine and 5 Gbit/s to the other.
Topology two_spines() {
  std::vector<topology::Link> links;
  for (uint32_t host = 0; host < 8; ++host) links.push_back(link(host, 8 + host / 2, 25));
  for (uint32_t rack = 8; rack < 12; ++rack) {
    links.push_back(link(rack, 12, 10));
    links.push_back(link(rack, 13, 5));
  }
  return *Topology::make(hosts_of(8), {{"rack-0"}, {"rack-1"}, {"rack-2"}, {"rack-3"}, {"spine-0"}, {"spine-1"}},
                         links);
}

// 2(n-1)/n S/B (BytePS §2.3, Table 1).
TEST(AllReduceBound, EqualHosts) {
  for (const uint32_t n : {2u, 3u, 8u, 100u}) {
    const Topology star = *topology::star(n, {.bits_per_second = 10e9});
    EXPECT_NEAR(seconds(star, n), 2 * (n - 1.0) / n * kBytes * 8 / 10e9, 1e-9) << n;
  }
}

TEST(AllReduceBound, OneWorkerSendsNothing) {
  const Topology star = *topology::star(3, {.bits_per_second = 10e9});
  EXPECT_EQ(seconds(star, 1, 2), 0);
  EXPECT_EQ(describe_limits(bound_of(star, 1, 2), star), "");
}

TEST(AllReduceBound, OwnersReachItOnAStar) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 500; ++i) {
    Fleet fleet = random_fleet(random, 12);
    const double expected = bound_seconds(fleet, kBytes);
    EXPECT_NEAR(seconds(star_with(fleet), fleet.n(), fleet.k()), expected, 1e-8 * expected)
        << i << ": " << fleet.n() << " + " << fleet.k();
  }
}

// One host of five is faster: the others still send their vectors once, but not 2(n-1)/n times.
TEST(AllReduceBound, FastHostHelps) {
  const Topology star = star_with({{100e9, 10e9, 10e9, 10e9, 10e9}, {}});
  EXPECT_NEAR(seconds(star, 5), kBytes * 8 / 10e9, 1e-9);
  const Topology racks = *Topology::make(hosts_of(5), {{"rack-0"}, {"rack-1"}, {"core"}},
                                         {link(0, 5, 100), link(1, 6, 10), link(2, 6, 10), link(3, 6, 10),
                                          link(4, 6, 10), link(5, 7, 100), link(6, 7, 40)});
  EXPECT_NEAR(seconds(racks, 5), kBytes * 8 / 10e9, 1e-9);
}

// R racks of which each has one uplink are R workers.
TEST(AllReduceBound, UplinksBind) {
  const Topology racks = *topology::racks(4, 4, {.bits_per_second = 10e9, .uplink_bits_per_second = 5e9});
  const AllReduceBound bound = bound_of(racks, 16);
  EXPECT_NEAR(bound.seconds, 2 * 3.0 / 4 * kBytes * 8 / 5e9, 1e-9);
  EXPECT_EQ(describe_limits(bound, racks), "the uplinks of 4 switches");
}

// The hosts of one rack bind together with the uplink of the other.
TEST(AllReduceBound, HostsAndUplinksBindTogether) {
  std::vector<topology::Link> links = {link(8, 9, 16)};
  for (uint32_t host = 0; host < 4; ++host) links.push_back(link(host, 8, 10));
  for (uint32_t host = 4; host < 8; ++host) links.push_back(link(host, 9, 20));
  const Topology racks = *Topology::make(hosts_of(8), {{"rack-0"}, {"rack-1"}}, links);
  const AllReduceBound bound = bound_of(racks, 8);
  EXPECT_NEAR(bound.seconds, 2 * 4 * kBytes * 8 / 56e9, 1e-9);
  EXPECT_EQ(describe_limits(bound, racks), "the links of 4 hosts and rack-1's uplink");
}

TEST(AllReduceBound, OneLinkBinds) {
  const Topology star = star_with({{1e9, 100e9, 100e9}, {}});
  EXPECT_EQ(describe_limits(bound_of(star, 3), star), "host-0's link");
  const Topology racks = *topology::racks(2, 2, {.bits_per_second = 10e9, .uplink_bits_per_second = 1e9});
  EXPECT_NEAR(seconds(racks, 4), kBytes * 8 / 1e9, 1e-9);
}

TEST(AllReduceBound, EachDirectionBinds) {
  const Topology star =
      *Topology::make(hosts_of(3), {{"switch"}}, {{0, 3, 8e9, 4e9, 0}, {1, 3, 16e9, 16e9, 0}, {2, 3, 16e9, 16e9, 0}});
  EXPECT_NEAR(seconds(star, 3), kBytes * 8 / 4e9, 1e-9);
}

// Host 0 may collect and host 1 distribute, so that the fast directions are of use.
TEST(AllReduceBound, DirectionsMayDiffer) {
  const Topology star =
      *Topology::make(hosts_of(4), {{"switch"}},
                      {{0, 4, 10e9, 30e9, 0}, {1, 4, 30e9, 10e9, 0}, {2, 4, 10e9, 10e9, 0}, {3, 4, 10e9, 10e9, 0}});
  EXPECT_NEAR(seconds(star, 4), 2 * 3 * kBytes * 8 / 60e9, 1e-9);
}

TEST(AllReduceBound, SpinesCarryTogether) {
  const Topology spines = two_spines();
  const AllReduceBound bound = bound_of(spines, 8);
  EXPECT_NEAR(bound.seconds, 2 * 3.0 / 4 * kBytes * 8 / 15e9, 1e-9);
  EXPECT_THAT(bound.limits, ElementsAre(8, 9, 10, 11));
}

// A bond of two links is one of their sum.
TEST(AllReduceBound, BondsCarryTogether) {
  const Topology bonds =
      *Topology::make(hosts_of(4), {{"left"}, {"right"}},
                      {link(0, 4, 25), link(1, 4, 25), link(2, 5, 25), link(3, 5, 25), link(4, 5, 5), link(4, 5, 5)});
  EXPECT_NEAR(seconds(bonds, 4), kBytes * 8 / 10e9, 1e-9);
}

// Pods of 4 hosts reach the core over 4 links of 1 Gbit/s; edge switches reach their pods' over 2.
TEST(AllReduceBound, PodsBind) {
  const Topology tree = *topology::fat_tree(4, {.bits_per_second = 10e9, .uplink_bits_per_second = 1e9});
  EXPECT_NEAR(seconds(tree, 16), 2 * 7.0 / 8 * kBytes * 8 / 2e9, 1e-9);
  std::vector<topology::Link> links = tree.links();
  for (topology::Link& link : links) {
    const bool is_of_core = tree.name(link.a).starts_with("core") || tree.name(link.b).starts_with("core");
    if (is_of_core) link.bits_per_second = link.back_bits_per_second = 0.1e9;
  }
  const Topology slow_core = *Topology::make(tree.hosts(), tree.switches(), links);
  EXPECT_NEAR(seconds(slow_core, 16), 2 * 3.0 / 4 * kBytes * 8 / 0.4e9, 1e-9);
}

// The job's members are all below one switch of the far end of a chain.
TEST(AllReduceBound, OtherHostsTakeNoPart) {
  const Topology racks = *topology::racks(2, 4, {.bits_per_second = 10e9, .uplink_bits_per_second = 1e6});
  const std::vector<uint32_t> host_of = {4, 5, 6, 7};
  EXPECT_NEAR(all_reduce_bound(racks, host_of, 4, kBytes).seconds, 2 * 3.0 / 4 * kBytes * 8 / 10e9, 1e-9);
}

// Summers of a tree are a strategy, so that their bound is no less.
TEST(AllReduceBound, SummersAreNoFaster) {
  std::mt19937_64 random(11);
  int equal = 0;
  for (int i = 0; i < 500; ++i) {
    const auto workers = static_cast<uint32_t>(1 + random() % 8), summers = static_cast<uint32_t>(random() % 5);
    const Topology tree = random_tree(random, workers + summers);
    const double by_summers = bound_with_uplinks(tree, workers, summers, kBytes)->seconds;
    const double of_all = seconds(tree, workers, summers);
    EXPECT_LE(of_all, by_summers * (1 + 1e-9)) << "tree " << i << ": " << workers << " + " << summers;
    equal += of_all >= by_summers * (1 - 1e-9) ? 1 : 0;
  }
  EXPECT_GT(equal, 100) << "most are limited by one host or uplink, which no strategy avoids";
}

}  // namespace
}  // namespace gleaner::plan
