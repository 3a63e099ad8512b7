#include "common/strategy/networked_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "common/topology/builders.h"
#include "tests/unit/strategy/mixed_racks.h"
#include "tests/unit/strategy/probed_hosts.h"

namespace gleaner::strategy {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

collective::Spec fitted(const collective::Spec& schedule, topology::Topology topology, uint32_t workers) {
  const auto fits = fit_to_network(schedule, {.topology = std::move(topology)}, workers, 0);
  EXPECT_TRUE(fits.ok()) << fits.status();
  return std::get<collective::Spec>(fits->strategy);
}

TEST(FitToNetwork, GroupsAreTheRacks) {
  const topology::Topology racks = *topology::racks(2, 4, {});
  EXPECT_THAT(fitted({.algorithm = "two-level"}, racks, 8).factors, ElementsAre(2, 4));
  EXPECT_THAT(fitted({.algorithm = "racks"}, racks, 7).group_sizes, ElementsAre(4, 3)) << "unequal";
  EXPECT_THAT(fitted({.algorithm = "two-level", .factors = {4, 2}}, racks, 8).factors, ElementsAre(4, 2)) << "given";
  EXPECT_EQ(fitted({.algorithm = "ring"}, racks, 8), collective::Spec{.algorithm = "ring"});
}

TEST(FitToNetwork, ProbesSuggestATreeWhereGroupsCount) {
  const JobNetwork probed{.topology = probes_of(hidden({4, 4}), {})};
  const collective::Spec ring{.algorithm = "ring"}, groups{.algorithm = "two-level", .factors = {4, 2}};
  const auto pairs = *fit_to_network(ring, probed, 8, 0);
  EXPECT_FALSE(pairs.network.of_probes);
  EXPECT_TRUE(topology::is_of_probes(pairs.network.topology));
  const auto tree = *fit_to_network(Auto(), probed, 8, 0);
  EXPECT_TRUE(tree.network.of_probes);
  EXPECT_EQ(tree.network.topology.switches().size(), 3u) << "two racks and the core";
  EXPECT_EQ(fit_to_network(groups, probed, 8, 0)->network.topology.switches().size(), 5u) << "as many as are given";
}

TEST(FitToNetwork, EachMemberNeedsAHost) {
  const auto fits = fit_to_network(Auto(), {.topology = *topology::star(4, {})}, 3, 2);
  EXPECT_THAT(fits.status().message(), HasSubstr("4 hosts, and the job 3 workers and 2 summers"));
}

TEST(FindRankMaps, ScheduleTakesItsRanks) {
  const collective::Spec ring{.algorithm = "ring"};
  const auto found = find_rank_maps(ring, {.topology = mixed_racks()}, 8);
  ASSERT_TRUE(found.ok()) << found.status();
  const auto& schedule = std::get<collective::Spec>(found->strategy);
  EXPECT_THAT(schedule.rank_of, Not(IsEmpty()));
  EXPECT_THAT(found->network.mapped, ElementsAre(Field(&MappedSpec::spec, schedule)));
  const auto kept = find_rank_maps(ring, {.topology = mixed_racks(), .source = RankMapSource::kIdentity}, 8);
  EXPECT_EQ(std::get<collective::Spec>(kept->strategy), ring);
}

TEST(FindRankMaps, AutoHasMapsOfItsCandidates) {
  const auto found = find_rank_maps(Auto(), {.topology = mixed_racks()}, 8);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(is_auto(found->strategy));
  EXPECT_GT(found->network.mapped.size(), 1u);
}

TEST(FindRankMaps, SummersHaveNoRanks) {
  EXPECT_THAT(find_rank_maps(Summers(), {.topology = mixed_racks()}, 8)->network.mapped, IsEmpty());
}

}  // namespace
}  // namespace gleaner::strategy
