#include "common/machine/profile.h"

#include <gmock/gmock.h>

namespace gleaner::machine {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

api::Gpu gpu(const std::string& uuid, int numa_node, const std::string& pci_switch, int nvlink_group = -1) {
  return {.uuid = uuid, .numa_node = numa_node, .pci_switch = pci_switch, .nvlink_group = nvlink_group};
}

TEST(MachineOfProfile, HasSwitchesAndNvlink) {
  api::NodeProfileStatus profile;
  profile.gpus = {gpu("a", 0, "s0", 0), gpu("b", 0, "s0", 0), gpu("c", 1, "s1", 0), gpu("d", 1, "", 0)};
  profile.nics = {{.name = "eth0",
                   .pci_address = "0000:3b:00.0",
                   .pci_switch = "s1",
                   .numa_node = 1,
                   .bits_per_second = 25e9,
                   .default_route = true}};
  const Machine machine = machine_of(profile);
  EXPECT_TRUE(check(machine).ok()) << check(machine);
  ASSERT_EQ(machine.switches.size(), 2u);
  EXPECT_EQ(machine.switches[1].numa_node, 1);
  EXPECT_EQ(machine.gpus[1].at, 0u);
  EXPECT_EQ(machine.gpus[3].at, std::nullopt);
  EXPECT_EQ(machine.nics[0].at, 1u);
  EXPECT_EQ(machine.nics[0].bandwidth, (Bandwidth{25e9, false})) << "the profile states it";
  EXPECT_TRUE(machine.gpus[0].bandwidth.is_assumed && machine.switches[0].bandwidth.is_assumed);
  ASSERT_EQ(machine.nvlink.size(), 1u);
  EXPECT_THAT(machine.nvlink[0].gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(machine.nvlink[0].bandwidth.is_assumed);
  EXPECT_THAT(machine.gaps, ElementsAre(HasSubstr("without a visible PCIe switch")));
}

// Returns the links of a DGX-1 with eight V100, of 200 Gbit/s each.
std::vector<api::Nvlink> cube_mesh(const std::vector<api::Gpu>& gpus) {
  const uint32_t links[][3] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
                               {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  std::vector<api::Nvlink> nvlinks;
  for (const auto& [a, b, count] : links) nvlinks.push_back({{gpus[a].uuid, gpus[b].uuid}, count, count * 200e9});
  return nvlinks;
}

TEST(MachineOfProfile, CubeMeshIsTwoSquares) {
  api::NodeProfileStatus profile;
  // The bus need not have the GPUs in the order of the squares.
  for (const char* uuid : {"4", "0", "5", "1", "6", "2", "7", "3"}) profile.gpus.push_back(gpu(uuid, 0, "s"));
  std::vector<api::Gpu> ordered = profile.gpus;
  std::ranges::sort(ordered, {}, &api::Gpu::uuid);
  profile.nvlinks = cube_mesh(ordered);
  const Machine machine = machine_of(profile);
  EXPECT_TRUE(check(machine).ok()) << check(machine);
  ASSERT_EQ(machine.nvlink.size(), 2u);
  EXPECT_THAT(machine.nvlink[0].gpus, ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(machine.nvlink[1].gpus, ElementsAre(1, 3, 5, 7));
  EXPECT_EQ(machine.nvlink[0].bandwidth, (Bandwidth{600e9, false})) << "one link to each other GPU";
  EXPECT_TRUE(machine.nvlink[0].is_direct);
  EXPECT_THAT(machine.gaps, Contains(HasSubstr("4 pairs of GPUs of different groups")));
}

TEST(MachineOfProfile, BridgesJoinPairs) {
  api::NodeProfileStatus profile;
  profile.gpus = {gpu("a", 0, "s"), gpu("b", 0, "s"), gpu("c", 0, "s"), gpu("d", 0, "s"), gpu("e", 0, "s")};
  profile.nvlinks = {{{"a", "c"}, 4, 800e9}, {{"b", "d"}, 4, 0}, {{"e", "gone"}, 4, 800e9}};
  const Machine machine = machine_of(profile);
  ASSERT_EQ(machine.nvlink.size(), 2u);
  EXPECT_EQ(machine.nvlink[0], (NvlinkGroup{{0, 2}, {800e9, false}, true}));
  EXPECT_EQ(machine.nvlink[1], (NvlinkGroup{{1, 3}, {800e9, true}, true})) << "as much as a V100's links have";
  EXPECT_THAT(machine.gaps, testing::Not(Contains(HasSubstr("NVLink"))));
}

TEST(MachineOfProfile, SlowestGpuLimitsNvswitches) {
  api::NodeProfileStatus profile;
  profile.gpus = {gpu("a", 0, "s", 0), gpu("b", 0, "s", 0)};
  profile.gpus[0].nvlink_bits_per_second = 3.6e12;
  profile.gpus[1].nvlink_bits_per_second = 3.4e12;
  EXPECT_EQ(machine_of(profile).nvlink.at(0), (NvlinkGroup{{0, 1}, {3.4e12, false}, false}));
  profile.gpus[1].nvlink_bits_per_second = 0;
  EXPECT_EQ(machine_of(profile).nvlink.at(0), (NvlinkGroup{{0, 1}, {kAssumedNvlink, true}, false}));
}

TEST(MachineOfProfile, GpusInMigModeAreLeftOut) {
  api::NodeProfileStatus profile;
  profile.gpus = {gpu("a", 0, "", 0), gpu("b", 0, "", 0), gpu("c", 0, "", 0)};
  profile.gpus[0].mig = true;
  profile.nics = {{.name = "ib0", .bits_per_second = 100e9, .rdma_device = "mlx5_0"}};
  profile.paths = {{"c", "ib0", api::PathType::kPix}};
  const Machine machine = machine_of(profile);
  ASSERT_EQ(machine.gpus.size(), 2u);
  EXPECT_EQ(machine.gpus[0].name, "b");
  EXPECT_EQ(machine.gpus[1].at, 0u) << "the path is that of c";
  EXPECT_THAT(machine.nvlink.at(0).gpus, ElementsAre(0, 1));
  EXPECT_THAT(machine.gaps, Contains("1 GPU in MIG mode is left out (a): instances can't reach the memory of other "
                                     "GPUs."));
  profile.gpus[1].mig = profile.gpus[2].mig = true;
  EXPECT_EQ(machine_of(profile).gpus.size(), 3u);
  EXPECT_THAT(machine_of(profile).nvlink, IsEmpty());
}

TEST(MachineOfProfile, TakesFastestRdmaNics) {
  api::NodeProfileStatus profile;
  profile.gpus = {gpu("a", 0, "")};
  profile.nics = {{.name = "eth0", .bits_per_second = 100e9, .rdma_device = "mlx5_8", .default_route = true},
                  {.name = "ib0", .bits_per_second = 400e9, .rdma_device = "mlx5_0"},
                  {.name = "ib1", .bits_per_second = 400e9, .rdma_device = "mlx5_1"},
                  {.name = "fast", .bits_per_second = 800e9}};
  const Machine machine = machine_of(profile);
  ASSERT_EQ(machine.nics.size(), 2u);
  EXPECT_EQ(machine.nics[0].name, "ib0");
  EXPECT_TRUE(machine.nics[1].is_rdma);
}

TEST(MachineOfProfile, PathsTellSwitchesOfEarlierAgents) {
  api::NodeProfileStatus profile;
  profile.gpus = {gpu("a", 0, ""), gpu("b", 0, ""), gpu("c", 1, "")};
  profile.nics = {{.name = "ib0", .bits_per_second = 100e9, .rdma_device = "mlx5_0"}};
  profile.paths = {
      {"a", "ib0", api::PathType::kPix}, {"b", "ib0", api::PathType::kPxb}, {"c", "ib0", api::PathType::kSys}};
  const Machine machine = machine_of(profile);
  ASSERT_EQ(machine.switches.size(), 1u);
  EXPECT_EQ(machine.switches[0].name, "switch of ib0");
  EXPECT_EQ(machine.gpus[0].at, 0u);
  EXPECT_EQ(machine.gpus[1].at, 0u);
  EXPECT_EQ(machine.gpus[2].at, std::nullopt);
  EXPECT_EQ(machine.nics[0].at, 0u);
}

TEST(MachineOfProfile, ListsUnknownFacts) {
  api::NodeProfileStatus profile;
  profile.gpus = {gpu("a", -1, ""), gpu("b", -1, "")};
  EXPECT_THAT(machine_of(profile).gaps,
              ElementsAre(HasSubstr("PCIe switch"), HasSubstr("NVLink"), HasSubstr("NIC that carries gradients")));
  profile.nvlinks.emplace();
  EXPECT_THAT(machine_of(profile).gaps, testing::Not(Contains(HasSubstr("NVLink")))) << "there is none, as NVML says";
  profile.nics = {{.name = "eth0", .default_route = true}};
  EXPECT_EQ(machine_of(profile).nics[0].bandwidth, (Bandwidth{kAssumedNic, true}));
  EXPECT_THAT(machine_of(profile).gaps, Contains(HasSubstr("NIC eth0 is virtual"))) << "as a bond";
  EXPECT_THAT(machine_of({}).gpus, IsEmpty());
}

}  // namespace
}  // namespace gleaner::machine
