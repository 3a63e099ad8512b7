#include "common/ranks/conflicts.h"

#include <gtest/gtest.h>

#include "common/collective/halving_doubling.h"
#include "common/collective/ring.h"
#include "common/collective/schedule_builder.h"
#include "tests/unit/ranks/figures.h"

namespace gleaner::ranks {
namespace {

using collective::Take;

TEST(Conflicts, StarHasNoneForRing) {
  const topology::Network star = make_network(*topology::star(7, {}));
  const Conflicts conflicts = conflicts_of(star, collective::ring(7), identity(7));
  EXPECT_EQ(conflicts.total, 0u);
  EXPECT_EQ(conflicts.most_flows, 1u);
}

// The ring 0 1 | 2 3 crosses each uplink once in each direction; the ring 0 2 1 3 crosses it twice.
TEST(Conflicts, RackOrderDecidesForRing) {
  const topology::Network racks = make_network(*topology::racks(2, 2, {}));
  const collective::Schedule ring = collective::ring(4);
  EXPECT_EQ(conflicts_of(racks, ring, {0, 1, 2, 3}).total, 0u);
  const Conflicts mixed = conflicts_of(racks, ring, {0, 2, 1, 3});
  EXPECT_EQ(mixed.total, 6u * 4);  // 6 steps; each of 2 uplinks carries 2 flows up and 2 down
  EXPECT_EQ(mixed.between_switches, 6u * 4);
  EXPECT_EQ(mixed.most_flows, 2u);
}

TEST(Conflicts, FlowsAreCountedByStepAndChannel) {
  const topology::Network racks = make_network(*topology::racks(2, 2, {}));
  const auto flows = count_flows(collective::halving_doubling(4), racks, identity(4)).value();
  ASSERT_EQ(flows.pattern_of_step.size(), 4u);
  for (const uint32_t inside : {0, 3}) {  // ranks exchange with their neighbour in the rack
    EXPECT_EQ(flows.of_step(inside).size(), 8u) << "each host's link, both ways";
    for (const ChannelFlows& channel : flows.of_step(inside)) EXPECT_EQ(channel.flows, 1u);
  }
  for (const uint32_t across : {1, 2}) {
    EXPECT_EQ(flows.of_step(across).size(), 12u);
    for (const ChannelFlows& channel : flows.of_step(across)) {
      const bool at_host = racks.topology.is_host(racks.topology.from(channel.channel)) ||
                           racks.topology.is_host(racks.topology.to(channel.channel));
      EXPECT_EQ(channel.flows, at_host ? 1u : 2u);
    }
  }
}

// Two messages to one peer are one flow; a second peer is a second flow, and shares the sender's own link.
TEST(Conflicts, SeveralPeersShareTheSendersLink) {
  const topology::Network star = make_network(*topology::star(3, {}));
  collective::ScheduleBuilder builder("test", {3}, 3);
  builder.transfer(0, 1, {0, 1}, Take::kReduce);
  builder.transfer(0, 1, {2, 1}, Take::kReduce);
  builder.end_step();
  builder.transfer(0, 1, {0, 1}, Take::kReduce);
  builder.transfer(0, 2, {1, 1}, Take::kReduce);
  builder.end_step();
  const Conflicts conflicts = conflicts_of(star, builder.take(), identity(3));
  EXPECT_EQ(conflicts.total, 1u);
  EXPECT_EQ(conflicts.between_switches, 0u);
}

TEST(Conflicts, OneHostHasNone) {
  const topology::Network star = make_network(*topology::star(1, {}));
  EXPECT_EQ(conflicts_of(star, collective::ring(1), {0}).most_flows, 0u);
}

TEST(Conflicts, RefusesWhatIsNoMap) {
  const topology::Network star = make_network(*topology::star(3, {}));
  const auto error = [&](const RankMap& map, uint32_t ranks) {
    return std::string(count_flows(collective::ring(ranks), star, map).status().message());
  };
  EXPECT_EQ(error({0, 2, 2}, 3), "the rank map gives host 2 both rank 1 and rank 2; a host has one rank at most");
  EXPECT_EQ(error({0, 1, 3}, 3), "the rank map gives rank 2 to host 3; there are hosts 0 to 2");
  EXPECT_EQ(error({0, 1}, 3), "the rank map has 2 ranks; the schedule has 3");
  EXPECT_EQ(error({0, 1, 2, 3}, 4), "4 ranks do not fit on 3 hosts; a host has one rank at most");
}

}  // namespace
}  // namespace gleaner::ranks
