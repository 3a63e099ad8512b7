#include "common/strategy/rack_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/plan/schedule_name.h"
#include "common/strategy/candidates.h"
#include "common/topology/builders.h"
#include "tests/unit/strategy/mixed_racks.h"

namespace gleaner::strategy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Racks, ArePlacesOrSwitches) {
  for (const bool places : {false, true}) {
    const auto racks = racks_of(mixed_racks(places), 6);
    EXPECT_THAT(racks, ElementsAre(ElementsAre(0, 2, 4), ElementsAre(1, 3, 5)));
    EXPECT_THAT(equal_stages(racks), ElementsAre(2, 3));
  }
  EXPECT_THAT(equal_stages(racks_of(mixed_racks(), 5)), IsEmpty());
  EXPECT_THAT(racks_of(*topology::star(4, {}), 4), IsEmpty());
  EXPECT_THAT(equal_stages({{0}, {1}}), IsEmpty()) << "a rack has several hosts";
}

TEST(Racks, PlacesCountMoreThanSwitches) {
  const topology::Topology star = *topology::star(4, {});
  std::vector<topology::Host> hosts = star.hosts();
  for (uint32_t host = 0; host < 4; ++host) hosts[host].place = {host % 2, host / 2};
  const auto placed = topology::Topology::make(hosts, star.switches(), star.links());
  EXPECT_THAT(racks_of(*placed, 4), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
}

TEST(Racks, EqualRacksHaveTheClosedForm) {
  const double link = 10e9, uplink = 20e9;
  const auto network = make_network(*topology::racks(3, 4, {link, uplink, 1e-6}));
  const auto times = compare_racks(network, racks_of(network.topology, 12));
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_NEAR(times->flat_seconds_per_byte, 8 * 2 * 4 * 2.0 / 3 / uplink, 1e-15);
  EXPECT_NEAR(times->within_seconds_per_byte, 8 * 3 / link, 1e-18);
  EXPECT_NEAR(times->across_seconds_per_byte, 8 * 4.0 / 3 / link, 1e-18);
  EXPECT_NEAR(times->two_level_seconds_per_byte, 8 * (3 + 4.0 / 3) / link, 1e-18);
  EXPECT_NEAR(times->flat_latency_seconds, 2 * 4e-6, 1e-12);
  EXPECT_NEAR(times->two_level_latency_seconds, 2 * 2e-6 + 4 * 4e-6, 1e-12);
}

TEST(Racks, MasterHasTheFastestLink) {
  std::vector<topology::Host> hosts;
  for (int i = 0; i < 5; ++i) hosts.push_back({absl::StrCat("h", i), {}});
  const auto network = make_network(*topology::Topology::make(std::move(hosts), {{"a"}, {"b"}, {"core"}},
                                                              {{0, 5, 1e9, 1e9, 0},
                                                               {1, 5, 9e9, 9e9, 0},
                                                               {2, 5, 2e9, 2e9, 0},
                                                               {3, 6, 4e9, 4e9, 0},
                                                               {4, 6, 4e9, 3e9, 0},
                                                               {5, 7, 5e9, 4.5e9, 0},
                                                               {6, 7, 7e9, 6e9, 0}}));
  const auto racks = describe_racks(network, racks_of(network.topology, 5));
  ASSERT_EQ(racks.size(), 2u);
  EXPECT_EQ(racks[0].workers, 3u);
  EXPECT_EQ(racks[0].master, 9e9);
  EXPECT_EQ(racks[0].slowest_other, 1e9);
  EXPECT_EQ(racks[0].uplink, 4.5e9) << "of the slower direction";
  EXPECT_EQ(racks[1].master, 4e9);
  EXPECT_EQ(racks[1].slowest_other, 3e9);
}

TEST(Racks, OneWorkerIsItsRacksMaster) {
  const auto network = make_network(
      *topology::Topology::make({{"h0", {}}, {"h1", {}}, {"h2", {}}}, {{"a"}, {"b"}},
                                {{0, 3, 1e9, 1e9, 0}, {1, 3, 1e9, 1e9, 0}, {2, 4, 1e9, 1e9, 0}, {3, 4, 1e9, 1e9, 0}}));
  const auto racks = describe_racks(network, racks_of(network.topology, 3));
  ASSERT_EQ(racks.size(), 2u);
  EXPECT_EQ(racks[0].slowest_other, 1e9);
  EXPECT_TRUE(std::isinf(racks[1].slowest_other)) << "there is no other worker";
}

TEST(Racks, SlowWorkersBind) {
  std::vector<topology::Host> hosts;
  std::vector<topology::Link> links = {{4, 6, 40e9, 40e9, 0}, {5, 6, 40e9, 40e9, 0}};
  for (uint32_t host = 0; host < 4; ++host) {
    const double bandwidth = host == 1 ? 1e9 : 20e9;
    hosts.push_back({absl::StrCat("h", host), {}});
    links.push_back({host, host < 2 ? 4u : 5u, bandwidth, bandwidth, 0});
  }
  const auto network =
      make_network(*topology::Topology::make(std::move(hosts), {{"a"}, {"b"}, {"core"}}, std::move(links)));
  const auto times = compare_racks(network, racks_of(network.topology, 4));
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_NEAR(times->within_seconds_per_byte, 8 / 1e9, 1e-18);
  EXPECT_NEAR(times->two_level_seconds_per_byte, 8 / 1e9, 1e-18);
  EXPECT_NEAR(times->ring_seconds_per_byte, 8 * 1.5 / 1e9, 1e-18);
}

// The condition and the times of candidates() are computed in different ways, and choose alike between racks, summers
// and the ring.
TEST(Racks, ConditionIsThatOfTheModel) {
  std::mt19937_64 dice(3);
  int pays = 0;
  for (int i = 0; i < 60; ++i) {
    const auto count = static_cast<uint32_t>(2 + dice() % 4), hosts = static_cast<uint32_t>(2 + dice() % 5);
    const double link = 10e9, uplink = 1e9 * static_cast<double>(1 + dice() % 40);
    const auto network = make_network(*topology::racks(count, hosts, {link, uplink, 5e-6}));
    const auto times = compare_racks(network, racks_of(network.topology, count * hosts));
    ASSERT_TRUE(times.ok());
    const auto all = *candidates(network, count * hosts, 0);
    const auto racks = std::ranges::find_if(all, [](const Candidate& c) { return name_of(c).starts_with("racks"); });
    ASSERT_NE(racks, all.end());
    EXPECT_NEAR(times->two_level_seconds_per_byte, racks->model.stream_seconds_per_byte,
                1e-6 * racks->model.stream_seconds_per_byte);
    EXPECT_NEAR(times->two_level_latency_seconds, racks->model.latency_seconds, 1e-12);
    const auto ring = std::ranges::find_if(all, [](const Candidate& c) { return name_of(c).starts_with("ring"); });
    EXPECT_NEAR(times->ring_seconds_per_byte, ring->model.stream_seconds_per_byte,
                1e-6 * ring->model.stream_seconds_per_byte);
    const double bytes = 1e9, partition = 64 << 10;
    const double by_racks = racks->model.seconds(bytes, partition);
    const double flat = std::min(all.front().model.seconds(bytes, partition), ring->model.seconds(bytes, partition));
    if (std::abs(by_racks / flat - 1) < 0.01) continue;
    EXPECT_EQ(times->holds(), by_racks < flat) << count << "x" << hosts << " " << uplink;
    pays += times->holds();
  }
  EXPECT_GT(pays, 3);
  EXPECT_LT(pays, 57);
}

TEST(Racks, UnequalOnesAreCandidates) {
  std::vector<topology::Host> hosts;
  std::vector<topology::Link> links = {{5, 7, 6e9, 6e9, 1e-6}, {6, 7, 3e9, 3e9, 1e-6}};
  for (uint32_t host = 0; host < 5; ++host) {
    hosts.push_back({absl::StrCat("h", host), {}});
    links.push_back({host, host < 3 ? 5u : 6u, 10e9, 10e9, 1e-6});
  }
  const auto network =
      make_network(*topology::Topology::make(std::move(hosts), {{"a"}, {"b"}, {"core"}}, std::move(links)));
  const auto times = *compare_racks(network, racks_of(network.topology, 5));
  const auto all = *candidates(network, 5, 0);
  const auto racks = std::ranges::find_if(all, [](const Candidate& c) { return name_of(c).starts_with("racks"); });
  ASSERT_NE(racks, all.end());
  EXPECT_EQ(name_of(*racks), "racks 3+2");
  EXPECT_NEAR(racks->model.stream_seconds_per_byte, times.two_level_seconds_per_byte, 1e-15);
  EXPECT_NEAR(racks->model.latency_seconds, times.two_level_latency_seconds, 1e-12);
}

}  // namespace
}  // namespace gleaner::strategy
