#include "common/topology/subset.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/topology/builders.h"

namespace gleaner::topology {
namespace {

TEST(Subset, KeepsHostsInOrder) {
  const Topology all = *racks(2, 2, {});
  const std::vector<uint32_t> hosts = {3, 0};
  const auto part = subset(all, hosts);
  ASSERT_TRUE(part.ok()) << part.status();
  ASSERT_EQ(part->host_count(), 2u);
  EXPECT_EQ(part->name(0), "host-3");
  EXPECT_EQ(part->hosts()[1].place, all.hosts()[0].place);
  EXPECT_EQ(part->switches().size(), all.switches().size());
  EXPECT_EQ(part->links().size(), all.links().size() - 2);
  ASSERT_TRUE(part->only_switch(0).has_value());
  EXPECT_EQ(part->name(part->only_switch(0)->node), all.name(all.only_switch(3)->node));
}

TEST(Subset, HostsMustReachEachOther) {
  const Topology chain =
      *Topology::make({{"a", {}}, {"b", {}}, {"c", {}}}, {}, {{0, 1, 1e9, 1e9, 0}, {1, 2, 1e9, 1e9, 0}});
  EXPECT_FALSE(subset(chain, std::vector<uint32_t>{0, 2}).ok());
  EXPECT_TRUE(subset(chain, std::vector<uint32_t>{0, 1}).ok());
}

}  // namespace
}  // namespace gleaner::topology
