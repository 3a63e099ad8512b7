#include "common/strategy/rank_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/collective/algorithms.h"
#include "common/ranks/annealing.h"
#include "common/strategy/candidates.h"
#include "common/strategy/choice.h"
#include "common/strategy/models.h"
#include "common/topology/builders.h"
#include "tests/unit/strategy/mixed_racks.h"

namespace gleaner::strategy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::vector<collective::Spec> kRing = {{"ring"}};

JobNetwork network_with(RankMapSource source, ranks::RankMap given = {}) {
  return {mixed_racks(), source, std::move(given), {}};
}

TEST(RankMaps, RingCrossesUplinksOnce) {
  const auto mapped = map_ranks(network_with(RankMapSource::kSearch), 8, kRing);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  ASSERT_THAT(*mapped, SizeIs(1));
  const auto& [ring, times] = mapped->front();
  uint32_t crossings = 0;  // of neighbours in the ring, which are in different racks
  for (uint32_t worker = 0; worker < 8; ++worker) {
    for (uint32_t other = 0; other < 8; ++other) {
      crossings += ring.rank_of[other] == (ring.rank_of[worker] + 1) % 8 && worker % 2 != other % 2;
    }
  }
  EXPECT_EQ(crossings, 2u);
  EXPECT_GT(times.identity_seconds, 3 * times.seconds);
  EXPECT_THAT(describe(ring, times), HasSubstr(" -> "));
}

TEST(RankMaps, RingTimesCompareAMapWithTheIdentity) {
  const topology::Topology racks = mixed_racks();
  const auto by_rack = ring_times(racks, {0, 2, 4, 6, 1, 3, 5, 7});
  ASSERT_TRUE(by_rack.has_value());
  EXPECT_GT(by_rack->identity_seconds, 3 * by_rack->seconds);
  const auto same = ring_times(racks, ranks::identity(8));
  EXPECT_EQ(same->seconds, same->identity_seconds);
  EXPECT_EQ(ring_times(*topology::star(kMostModelledRing + 1, {}), ranks::identity(kMostModelledRing + 1)),
            std::nullopt);
}

TEST(RankMaps, IdentityHasNoRanks) {
  const auto kept = map_ranks(network_with(RankMapSource::kIdentity), 8, kRing);
  ASSERT_TRUE(kept.ok());
  EXPECT_THAT(*kept, IsEmpty());
}

TEST(RankMaps, OneSwitchNeedsNoMap) {
  const JobNetwork star{*topology::star(8, {}), RankMapSource::kSearch, {}, {}};
  const auto mapped = map_ranks(star, 8, kRing);
  ASSERT_TRUE(mapped.ok());
  EXPECT_THAT(*mapped, IsEmpty());
}

// Ranks add in rank order, which has to be the order in which owners add.
TEST(RankMaps, AllGathersKeepTheWorkersNumbers) {
  const std::vector<collective::Spec> gather = {{"gather"}};
  for (const RankMapSource source : {RankMapSource::kSearch, RankMapSource::kGiven}) {
    const auto mapped = map_ranks(network_with(source, {2, 0, 1, 3, 4, 5, 6, 7}), 8, gather);
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    EXPECT_THAT(*mapped, IsEmpty());
  }
}

TEST(RankMaps, GivenMapIsInverted) {
  const auto mapped = map_ranks(network_with(RankMapSource::kGiven, {2, 0, 1, 3, 4, 5, 6, 7}), 8, kRing);
  ASSERT_TRUE(mapped.ok() && mapped->size() == 1) << mapped.status();
  EXPECT_THAT(mapped->front().spec.rank_of, ElementsAre(1, 2, 0, 3, 4, 5, 6, 7));
}

TEST(RankMaps, GivenMapMustBePermutation) {
  EXPECT_TRUE(validate(network_with(RankMapSource::kGiven, {1, 0, 2}), 3, 1).ok());
  EXPECT_THAT(validate(network_with(RankMapSource::kGiven, {1, 1, 2}), 3, 0).message(), HasSubstr("host 1 both"));
  EXPECT_THAT(validate(network_with(RankMapSource::kGiven, {1, 0, 3}), 3, 1).message(), HasSubstr("hosts 0 to 2"));
  EXPECT_THAT(validate(network_with(RankMapSource::kSearch), 8, 1).message(), HasSubstr("8 hosts"));
}

TEST(RankMaps, CandidatesHaveTheirMaps) {
  JobNetwork network = network_with(RankMapSource::kSearch);
  const auto schedules = schedules_for(network, 8);
  ASSERT_TRUE(schedules.ok()) << schedules.status();
  const auto mapped = map_ranks(network, 8, *schedules);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  const auto without = candidates(make_network(network.topology), 8, 0),
             with = candidates(make_network(network.topology), 8, 0, *mapped);
  ASSERT_TRUE(without.ok() && with.ok());
  ASSERT_EQ(without->size(), with->size());
  for (size_t i = 0; i < with->size(); ++i) {
    const Candidate &a = (*without)[i], &b = (*with)[i];
    EXPECT_LE(b.model.seconds(4e6, 4e6), a.model.seconds(4e6, 4e6) * 1.001) << name_of(b);
    if (name_of(b).starts_with("ring") || name_of(b).starts_with("racks")) {
      EXPECT_THAT(b.schedule->rank_of, SizeIs(8)) << name_of(b);
      EXPECT_TRUE(b.mapped.has_value()) << name_of(b);
    }
  }
}

TEST(RankMaps, AutoTakesThemIntoThePlan) {
  JobNetwork network = network_with(RankMapSource::kSearch);
  network.mapped = *map_ranks(network, 8, *schedules_for(network, 8));
  plan::Plan plan;
  plan.epoch = 1;
  plan.workers = 8;
  for (uint32_t i = 0; i < 8; ++i) plan.members.push_back({10e9});
  plan.first_partition = {0};
  std::vector<plan::Tensor> tensors = {{"large", 64 << 20}};
  const auto models = model(request_for(plan, std::make_shared<JobNetwork>(network), 20e-6, 0, true));
  ASSERT_TRUE(models.ok()) << models.status();
  const std::string line = choose(plan, tensors, models->candidates, models->fleet);
  ASSERT_TRUE(tensors[0].schedule.has_value()) << line;
  EXPECT_THAT(plan.schedules[*tensors[0].schedule].rank_of, SizeIs(8)) << line;
  EXPECT_THAT(line, HasSubstr("rank map: "));
}

TEST(RankMaps, FasterHostsMasterMoreChunks) {
  JobNetwork network{mixed_racks(), RankMapSource::kGiven, ranks::identity(8), {}};
  std::vector<topology::Link> links = network.topology.links();
  links[3].bits_per_second = links[3].back_bits_per_second = 2e9;  // of host 3
  for (size_t link = 8; link < links.size(); ++link)
    links[link].bits_per_second = links[link].back_bits_per_second = 1e12;
  network.topology = *topology::Topology::make(network.topology.hosts(), network.topology.switches(), std::move(links));
  const std::vector<collective::Spec> schedules = {{"ring"}, {"two-level", {2, 4}}};
  const auto weighted = map_ranks(network, 8, schedules);
  ASSERT_TRUE(weighted.ok()) << weighted.status();
  ASSERT_THAT(*weighted, SizeIs(1));
  const auto& [two_level, times] = weighted->front();
  EXPECT_THAT(two_level.rank_of, IsEmpty());
  ASSERT_THAT(two_level.masters.local, SizeIs(8));
  EXPECT_LT(2 * two_level.masters.local[3], two_level.masters.local[2]);
  EXPECT_THAT(describe(two_level, times), HasSubstr("masters by links"));
  const auto all = candidates(make_network(network.topology), 8, 0, *weighted);
  const auto is_weighted = [](const Candidate& c) { return c.schedule.has_value() && !c.schedule->masters.empty(); };
  ASSERT_EQ(std::ranges::count_if(*all, is_weighted), 1);
  const auto evenly = candidates(make_network(network.topology), 8, 0);
  const auto faster = std::ranges::find_if(*all, is_weighted);
  EXPECT_LT(faster->model.stream_seconds_per_byte,
            0.7 * (*evenly)[static_cast<size_t>(faster - all->begin())].model.stream_seconds_per_byte);
}

TEST(RankMaps, NetworkFollowsMembers) {
  plan::Plan plan;
  plan.workers = 4;
  for (uint32_t i = 0; i < 6; ++i) plan.members.push_back({i == 1 ? 1e9 : 100e9});
  plan.members[4] = {};
  plan.members[2].bandwidth_assumed = true;
  const JobNetwork network = network_with(RankMapSource::kSearch);
  const auto part = network_of(plan, 100e-6, 0, &network);  // the topology's longest round trip is 40 us
  ASSERT_TRUE(part.ok()) << part.status();
  ASSERT_EQ(part->topology.host_count(), 5u);
  EXPECT_EQ(part->topology.name(4), "h5");
  EXPECT_EQ(part->topology.bits_per_second(2), 1e9);
  EXPECT_EQ(part->topology.bits_per_second(4), 10e9);
  EXPECT_NEAR(part->topology.latency_seconds(0), 5e-6 + 15e-6, 1e-12);
  EXPECT_NEAR(part->topology.latency_seconds(10), 5e-6, 1e-12);
}

// Compares with the simulated times of all maps. Hosts are in three groups that are far from each other.
TEST(RankMaps, SearchedMapsTakeNoLongerThanTheBest) {
  std::mt19937_64 dice(1);
  for (const char* algorithm : {"ring", "halving-doubling", "double-tree", "blueconnect", "two-level"}) {
    for (const uint64_t bytes : {uint64_t{28}, uint64_t{1} << 20}) {
      std::vector<topology::Host> hosts;
      std::vector<topology::Link> links = {
          {7, 6, 10e9, 10e9, 90e-6}, {8, 6, 20e9, 20e9, 105e-6}, {9, 6, 8e9, 8e9, 100e-6}};
      for (uint32_t host = 0; host < 6; ++host) {
        hosts.push_back({absl::StrCat("host-", host), {}});
        links.push_back(
            {host, static_cast<uint32_t>(7 + dice() % 3), 10e9, 10e9, 1e-6 * static_cast<double>(1 + dice() % 10)});
      }
      const topology::Network network =
          topology::make_network(*topology::Topology::make(hosts, {{"core"}, {"a"}, {"b"}, {"c"}}, links));
      const auto schedule = *collective::make_schedule({.algorithm = algorithm}, 6);
      ranks::SearchOptions options;
      options.seconds_of = simulated_seconds(schedule, network, bytes, 1 << 20);
      const auto found = ranks::find_rank_map(schedule, network, bytes, options);
      ASSERT_TRUE(found.ok()) << found.status();
      double best = found->seconds;
      ranks::RankMap map = ranks::identity(6);
      do best = std::min(best, *options.seconds_of(map));
      while (std::ranges::next_permutation(map).found);
      EXPECT_LE(found->seconds, 1.03 * best) << algorithm << ", " << bytes;
    }
  }
}

}  // namespace
}  // namespace gleaner::strategy
