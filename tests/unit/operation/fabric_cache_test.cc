#include "operator/service/fabric_cache.h"

#include <gtest/gtest.h>

#include "tests/unit/fabric/measured.h"

namespace gleaner::operation {
namespace {

placement::Node node(const std::string& name, const std::string& rack) { return {name, {{"rack", rack}, {"x", "y"}}}; }

class FabricCacheTest : public ::testing::Test {
 protected:
  FabricCacheTest() {
    for (const char* name : {"a", "b", "c", "d"}) cache_.set_node(node(name, name < std::string("c") ? "r1" : "r2"));
  }
  FabricCache cache_{{{"rack"}}};
};

TEST_F(FabricCacheTest, FollowsNodesAndUplinks) {
  EXPECT_EQ(cache_.get()->groups().size(), 2u);
  EXPECT_TRUE(cache_.set_node(node("b", "r2")));
  EXPECT_EQ(cache_.get()->group_of("b"), 0u);
  EXPECT_TRUE(cache_.remove_node("a"));
  EXPECT_TRUE(cache_.get()->groups().empty());
  EXPECT_TRUE(cache_.set_node(node("a", "r1")));
  EXPECT_TRUE(cache_.set_node(node("b", "r1")));
  EXPECT_TRUE(cache_.set_uplinks({{"rack", "", 1e9}}));
  EXPECT_EQ(cache_.get()->groups()[0].uplink_bits_per_second, 1e9);
}

TEST_F(FabricCacheTest, OtherChangesKeepTheFabric) {
  const auto before = cache_.get();
  placement::Node same = node("a", "r1");
  same.labels["x"] = "z";
  same.ready = true;
  EXPECT_FALSE(cache_.set_node(same));
  EXPECT_FALSE(cache_.remove_node("unknown"));
  EXPECT_FALSE(cache_.set_uplinks({}));
  EXPECT_EQ(cache_.get(), before);
}

// Nodes whose agents measure two racks of four, without labels.
class MeasuredFabricTest : public ::testing::Test {
 protected:
  MeasuredFabricTest() {
    for (const std::string& name : racks_.names) {
      cache_.set_node({.name = name});
      cache_.set_profile(racks_.profiles.at(name));
    }
    cache_.measure(fabric::kNow);
  }
  // Returns a profile whose agent has measured the node of that place anew.
  std::shared_ptr<const api::NodeProfile> changed(uint32_t place, uint32_t peer) {
    auto profile = std::make_shared<api::NodeProfile>(*racks_.profiles.at(racks_.names[place]));
    profile->status.peers[peer].round_trip += absl::Nanoseconds(1);
    return profile;
  }
  fabric::MeasuredRacks racks_{8, 4};
  FabricCache cache_{{{"rack"}}};
};

TEST_F(MeasuredFabricTest, LatenciesMakeGroups) {
  ASSERT_EQ(cache_.get()->groups().size(), 2u);
  EXPECT_EQ(cache_.get()->groups()[0].name, "near-n00");
  EXPECT_EQ(cache_.near().measured, 8u);
}

TEST_F(MeasuredFabricTest, LabelsTakePrecedence) {
  for (const char* name : {"n00", "n01"}) cache_.set_node(node(name, "r1"));
  for (const char* name : {"n02", "n03"}) cache_.set_node(node(name, "r2"));
  cache_.measure(fabric::kNow);
  std::vector<std::string> names;
  for (const api::TopologyGroup& group : cache_.get()->groups()) names.push_back(group.name);
  EXPECT_EQ(names, (std::vector<std::string>{"r1", "r2"}));
}

TEST_F(MeasuredFabricTest, MeasuresOncePerPeriod) {
  EXPECT_TRUE(cache_.set_profile(changed(0, 1)));
  EXPECT_FALSE(cache_.remove_profile("unknown"));
  const auto before = cache_.get();
  cache_.measure(fabric::kNow + kMeasurePeriod / 2);
  EXPECT_EQ(cache_.get(), before);
  cache_.measure(fabric::kNow + kMeasurePeriod);
  EXPECT_NE(cache_.get(), before);
  EXPECT_FALSE(cache_.set_profile(changed(0, 1))) << "nothing has changed";
}

TEST_F(MeasuredFabricTest, AChangeAfterAnEarlyCallAsksForAnother) {
  EXPECT_TRUE(cache_.set_profile(changed(0, 1)));
  cache_.measure(fabric::kNow + kMeasurePeriod / 2);
  EXPECT_TRUE(cache_.set_profile(changed(0, 2)));
}

TEST_F(MeasuredFabricTest, MeasuresAfterTheClockWasSetBack) {
  cache_.set_profile(changed(0, 1));
  const auto before = cache_.get();
  cache_.measure(fabric::kNow - absl::Hours(1));
  EXPECT_NE(cache_.get(), before);
}

TEST_F(MeasuredFabricTest, PathsAcrossGroupsTellUplinks) {
  racks_.set_bandwidth(0, 4, 2e9);
  cache_.set_profile(changed(0, 1));
  cache_.measure(fabric::kNow + kMeasurePeriod);
  EXPECT_EQ(cache_.get()->groups()[1].uplink_bits_per_second, 2e9);
  EXPECT_EQ(cache_.get()->groups()[1].uplink_source, api::UplinkSource::kProbes);
}

TEST_F(MeasuredFabricTest, LatenciesFollowChangesAndNotNoise) {
  absl::Time now = fabric::kNow;
  // Returns the latencies of group 0 and the core after all agents have measured these.
  const auto after = [&](double within, double across) {
    for (uint32_t from = 0; from < 8; ++from) {
      auto profile = std::make_shared<api::NodeProfile>(*racks_.profiles.at(racks_.names[from]));
      for (api::PeerLatency& peer : profile->status.peers) {
        const bool near = (from < 4) == (peer.node < racks_.names[4]);
        peer.round_trip = absl::Seconds(2 * (near ? within : across));
      }
      cache_.set_profile(std::move(profile));
    }
    cache_.measure(now += kMeasurePeriod);
    return std::pair(cache_.get()->groups()[0].latency_seconds, cache_.get()->core_latency_seconds());
  };
  EXPECT_EQ(after(50e-6, 99e-6), std::pair(50e-6, 99e-6));
  EXPECT_EQ(after(60e-6, 80e-6), std::pair(50e-6, 99e-6));
  EXPECT_EQ(after(63e-6, 200e-6), std::pair(63e-6, 200e-6));
}

TEST_F(MeasuredFabricTest, AnotherOperatorGoesOnWithTheGroupsOfTheTopology) {
  api::TopologyStatus status{8, cache_.get()->groups(), {}};
  status.groups[0].uplink_bits_per_second = 3e9;
  status.groups[0].uplink_source = api::UplinkSource::kProbes;
  status.latency_seconds = cache_.get()->core_latency_seconds();
  FabricCache other({{"rack"}});
  for (const std::string& name : racks_.names) other.set_node({.name = name});
  other.restore(status);
  EXPECT_EQ(other.get()->groups(), status.groups);
  EXPECT_EQ(other.get()->core_latency_seconds(), status.latency_seconds);
  EXPECT_GT(status.latency_seconds, status.groups[0].latency_seconds);
  cache_.restore({});
  EXPECT_EQ(cache_.get()->groups().size(), 2u) << "own measurements count more";
}

TEST(RestoredFabric, NamesOfGroupsNeedNotBeginWithThatOfTheParent) {
  const std::string parent(195, 'p');
  const auto probed = [&](const std::string& name, const std::vector<std::string>& nodes) {
    return api::TopologyGroup{name, fabric::kProbedLevel, parent, nodes, 2};
  };
  FabricCache cache({{"rack"}});
  for (const char* name : {"a", "b", "c", "d"}) cache.set_node({.name = name});
  cache.restore({4, {{parent, "rack", "", {}, 4}, probed("near-a#1", {"a", "b"}), probed("near-c", {"c", "d"})}, {}});
  ASSERT_EQ(cache.get()->groups().size(), 2u);
  EXPECT_EQ(cache.get()->groups()[0].name, "near-a");
}

}  // namespace
}  // namespace gleaner::operation
