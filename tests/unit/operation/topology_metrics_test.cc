// Tests the metrics of the Topology.
#include "operator/service/topology_metrics.h"

#include <gmock/gmock.h>
#include <prometheus/text_serializer.h>

#include "absl/strings/str_cat.h"

namespace gleaner::operation {
namespace {

using testing::HasSubstr;
using testing::Not;

class TopologyMetricsTest : public testing::Test {
 protected:
  std::string shown(const api::TopologyStatus& topology) {
    metrics_.show(topology);
    return prometheus::TextSerializer().Serialize(registry_.Collect());
  }

  prometheus::Registry registry_;
  TopologyMetrics metrics_{registry_};
};

TEST_F(TopologyMetricsTest, CountsGroupsAndNodesBySource) {
  const std::string text = shown({.node_count = 6,
                                  .groups = {{.name = "z", .level = "zone", .nodes = {"n1"}},
                                             {.name = "z/r", .level = "rack", .parent = "z", .nodes = {"n2", "n3"}},
                                             {.name = "p", .level = "probes", .nodes = {"n4"}}}});
  EXPECT_THAT(text, HasSubstr("gleaner_operator_topology_groups{source=\"labels\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("gleaner_operator_topology_groups{source=\"probes\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gleaner_operator_topology_nodes 6\n"));
  EXPECT_THAT(text, HasSubstr("gleaner_operator_topology_nodes_without_group 2\n"));
}

TEST_F(TopologyMetricsTest, KnownUplinksHaveSeries) {
  api::TopologyStatus topology{
      .groups = {{.name = "a", .uplink_bits_per_second = 1e9, .uplink_source = {}}, {.name = "b"}}};
  topology.groups[0].uplink_source = api::UplinkSource::kStated;
  const std::string series = "uplink_bits_per_second{group=\"a\",source=\"stated\"} 1000000000\n";
  EXPECT_THAT(shown(topology), testing::AllOf(HasSubstr(series), Not(HasSubstr("group=\"b\""))));
  topology.groups[0].uplink_source = api::UplinkSource::kProbes;
  EXPECT_THAT(shown(topology), testing::AllOf(HasSubstr("source=\"probes\""), Not(HasSubstr(series))));
}

TEST_F(TopologyMetricsTest, UplinksHaveAHundredSeriesAtMost) {
  api::TopologyStatus topology;
  for (int i = 0; i < 200; ++i) topology.groups.push_back({.name = absl::StrCat(i), .uplink_bits_per_second = 1e9});
  const std::string text = shown(topology);
  size_t found = 0;
  for (size_t at = text.find("{group="); at != std::string::npos; at = text.find("{group=", at + 1)) ++found;
  EXPECT_EQ(found, TopologyMetrics::kMostUplinks);
}

}  // namespace
}  // namespace gleaner::operation
