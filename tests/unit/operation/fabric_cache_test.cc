#include "operator/service/fabric_cache.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gleaner::operation
