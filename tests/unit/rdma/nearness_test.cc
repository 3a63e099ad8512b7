#include "common/transport/rdma/nearness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace gleaner::transport::rdma {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A machine with two sockets of two NUMA nodes each.
class NodesTest : public ::testing::Test {
 protected:
  NodesTest() {
    node("node0", "0-1,8", "10 12 32 32");
    node("node1", "2-3", "12 10 32 32");
    node("node2", "4-5", "32 32 10 12");
    node("node3", "6-7", "32 32 12 10");
    std::ofstream(root_ / "sys/devices/system/node/online") << "0-3\n";
  }
  ~NodesTest() override { std::filesystem::remove_all(root_); }
  void node(const std::string& name, const std::string& cores, const std::string& distances) {
    const auto folder = root_ / "sys/devices/system/node" / name;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "cpulist") << cores << "\n";
    std::ofstream(folder / "distance") << distances << "\n";
  }
  Nodes nodes() const { return Nodes::read(root_.string()); }
  const std::filesystem::path root_ = std::filesystem::path(::testing::TempDir()) / "nearness_test";
};

TEST(NumbersIn, ListsAndRanges) {
  EXPECT_THAT(numbers_in("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(numbers_in("\n"), IsEmpty());
  EXPECT_THAT(numbers_in("x,-1,5,7-6,1-99999999"), ElementsAre(5));
}

TEST_F(NodesTest, CoresHaveNodes) {
  EXPECT_THAT(nodes().with({8}), ElementsAre(0));
  EXPECT_THAT(nodes().with({1, 6}), ElementsAre(0, 3));
  EXPECT_THAT(nodes().with({99}), IsEmpty());
  EXPECT_THAT(Nodes::read("/nowhere").with({0}), IsEmpty());
}

TEST_F(NodesTest, GpuBelongsToItsNode) {
  const auto device = [&](const std::string& address, const std::string& node) {
    const auto folder = root_ / "sys/bus/pci/devices" / address;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "numa_node") << node << "\n";
  };
  device("0000:3b:00.0", "2");
  device("0001:af:00.1", "-1");
  const auto node = [&](const std::string& what) { return node_of(what, root_.string()); };
  EXPECT_EQ(node("3").value(), 3);
  EXPECT_EQ(node("0000:3b:00.0").value(), 2);
  EXPECT_EQ(node("3B:00.0").value(), 2);
  EXPECT_EQ(node("00000000:3B:00.0").value(), 2) << "the notation of nvidia-smi";
  EXPECT_EQ(node("00000001:AF:00.1").value(), -1) << "the node is unknown";
  EXPECT_EQ(node("4").status().message(), "this machine has no NUMA node 4; see `lscpu`");
  EXPECT_TRUE(absl::IsNotFound(node("-1").status()));
  EXPECT_EQ(node("0000:3c:00.0").status().message(), "this machine has no PCI device 0000:3c:00.0; see `lspci -D`");
  EXPECT_TRUE(absl::IsInvalidArgument(node("cuda:0").status())) << node("cuda:0").status();
  EXPECT_TRUE(absl::IsInvalidArgument(node("../3b:00.0").status()));
}

TEST_F(NodesTest, CostsComeFromKernelTable) {
  EXPECT_EQ(nodes().cost(1, 1), 1);
  EXPECT_EQ(nodes().cost(0, 1), 1.2);
  EXPECT_EQ(nodes().cost(0, 3), 3.2);
  EXPECT_EQ(nodes().cost(0, 17), 1) << "not known";
  EXPECT_EQ(nodes().cost(17, 0), 1);
}

TEST_F(NodesTest, DistanceIsFromNearestNode) {
  EXPECT_THAT(costs_of({0, 1, 2, -1}, {0}, nodes()), ElementsAre(1, 1.2, 3.2, 1));
  EXPECT_THAT(costs_of({0, 1, 2, -1}, {1, 2}, nodes()), ElementsAre(1.2, 1, 1, 1));
  EXPECT_THAT(costs_of({0, 3}, {}, nodes()), ElementsAre(1, 1)) << "the node of this process is unknown";
  EXPECT_THAT(costs_of({0, 3}, {0}, Nodes()), ElementsAre(1, 1));
}

TEST(Worth, FarPortsCountLess) {
  EXPECT_THAT(usable_bandwidths({100, 100, 400}, {1, 2, 1}, true), ElementsAre(100, 0, 400));
  EXPECT_THAT(usable_bandwidths({100, 100, 400}, {1, 2, 1}, false), ElementsAre(100, 50, 400));
  EXPECT_THAT(usable_bandwidths({100, 100}, {2, 3.2}, true), ElementsAre(100, 0))
      << "no port is near, so the nearest ports count";
  EXPECT_THAT(usable_bandwidths({100}, {3.2}, true), ElementsAre(100));
  EXPECT_THAT(usable_bandwidths({}, {}, true), IsEmpty());
}

TEST(Cores, ThisProcessHasSome) { EXPECT_FALSE(own_cores().empty()); }

}  // namespace
}  // namespace gleaner::transport::rdma
