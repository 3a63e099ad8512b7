// Nodes as the API server writes them.
#include "operator/service/cluster.h"

#include <gtest/gtest.h>

namespace gleaner::operation {
namespace {

using nlohmann::json;

TEST(Node, ReadyAndSchedulable) {
  json object = json::parse(R"({"metadata": {"name": "n1", "labels": {"zone": "a"}}, "spec": {"unschedulable": true},
    "status": {"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}})");
  auto node = placement::parse_node(object);
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->name, "n1");
  EXPECT_TRUE(node->ready);
  EXPECT_TRUE(node->cordoned);
  EXPECT_EQ(node->labels.at("zone"), "a");
  object["status"]["conditions"][1]["status"] = "Unknown";
  object["spec"].erase("unschedulable");
  node = placement::parse_node(object);
  EXPECT_FALSE(node->ready);
  EXPECT_FALSE(node->cordoned);
}

}  // namespace
}  // namespace gleaner::operation
