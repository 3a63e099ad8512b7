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
  profile.nics = {{.name = "eth0", .default_route = true}};
  EXPECT_EQ(machine_of(profile).nics[0].bandwidth, (Bandwidth{kAssumedNic, true}));
  EXPECT_THAT(machine_of(profile).gaps, Contains(HasSubstr("NIC eth0 is virtual"))) << "as a bond";
  EXPECT_THAT(machine_of({}).gpus, IsEmpty());
}

}  // namespace
}  // namespace gleaner::machine
