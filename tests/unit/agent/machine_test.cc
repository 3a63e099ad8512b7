// Tests with whole machines, some recorded and some made from published topologies; machines/README.md lists them.
#include "agent/discover/machine.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/unit/agent/machine_tree.h"

namespace gleaner::discover {
namespace {

using api::SpeedSource;
using testing::ElementsAre;
using testing::IsEmpty;

Machine read(const std::string& name) {
  const MachineTree tree(name);
  absl::StatusOr<Machine> machine = read_machine(tree.source());
  EXPECT_TRUE(machine.ok()) << machine.status();
  return machine.ok() ? *std::move(machine) : Machine();
}

// Returns a line for each NIC, for example "eth0 mlx5_core 25 mlx5_0 *": name, driver, Gbit/s, the RDMA device if there
// is one, and * for the default route.
std::vector<std::string> nics(const Machine& machine) {
  std::vector<std::string> lines;
  for (const api::Nic& nic : machine.nics) {
    lines.push_back(absl::StrCat(nic.name, " ", nic.driver.empty() ? "-" : nic.driver, " ", nic.bits_per_second / 1e9,
                                 nic.rdma_device.empty() ? "" : absl::StrCat(" ", nic.rdma_device),
                                 nic.default_route ? " *" : ""));
  }
  return lines;
}

// Returns a line for each GPU: the distances to the NICs that have a PCI address, in the order of the NICs.
std::vector<std::string> matrix(const Machine& machine) {
  std::vector<std::string> lines;
  for (const api::Gpu& gpu : machine.gpus) {
    std::vector<std::string> row;
    for (const api::Path& path : machine.paths) {
      if (path.gpu == gpu.uuid) row.emplace_back(api::name_of(path.type));
    }
    lines.push_back(absl::StrJoin(row, " "));
  }
  return lines;
}

TEST(Machine, HgxH100) {
  const Machine machine = read("hgx-h100");
  EXPECT_EQ(machine.processors.cpus, 224);
  EXPECT_EQ(machine.processors.numa_nodes, 2u);
  EXPECT_EQ(machine.processors.memory_bytes, 2113498112ull * 1024);
  ASSERT_EQ(machine.gpus.size(), 8u);
  EXPECT_EQ(machine.gpus[7].pci_address, "0000:d9:00.0");
  EXPECT_EQ(machine.gpus[7].numa_node, 1);
  EXPECT_THAT(nics(machine),
              ElementsAre("ens6f0np0 mlx5_core 100 mlx5_8 *", "ens6f1np1 mlx5_core 0", "ibs0 mlx5_core 400 mlx5_0",
                          "ibs1 mlx5_core 400 mlx5_1", "ibs2 mlx5_core 400 mlx5_2", "ibs3 mlx5_core 400 mlx5_3",
                          "ibs4 mlx5_core 400 mlx5_4", "ibs5 mlx5_core 400 mlx5_5", "ibs6 mlx5_core 400 mlx5_6",
                          "ibs7 mlx5_core 400 mlx5_7"));
  EXPECT_THAT(matrix(machine), ElementsAre("PHB PHB PIX PHB PHB PHB SYS SYS SYS SYS",  //
                                           "PHB PHB PHB PIX PHB PHB SYS SYS SYS SYS",  //
                                           "PHB PHB PHB PHB PIX PHB SYS SYS SYS SYS",  //
                                           "PHB PHB PHB PHB PHB PIX SYS SYS SYS SYS",  //
                                           "SYS SYS SYS SYS SYS SYS PIX PHB PHB PHB",  //
                                           "SYS SYS SYS SYS SYS SYS PHB PIX PHB PHB",  //
                                           "SYS SYS SYS SYS SYS SYS PHB PHB PIX PHB",  //
                                           "SYS SYS SYS SYS SYS SYS PHB PHB PHB PIX"));
}

TEST(Machine, DgxA100) {
  const Machine machine = read("dgx-a100");
  EXPECT_THAT(nics(machine),
              ElementsAre("enp225s0f0 mlx5_core 100 mlx5_4 *", "ib0 mlx5_core 200 mlx5_0", "ib1 mlx5_core 200 mlx5_1",
                          "ib2 mlx5_core 200 mlx5_2", "ib3 mlx5_core 200 mlx5_3"));
  EXPECT_THAT(matrix(machine), ElementsAre("SYS PXB PIX SYS SYS", "SYS PXB PIX SYS SYS",  //
                                           "PHB SYS SYS PXB PIX", "PHB SYS SYS PXB PIX"));
}

TEST(Machine, AzureNdv2) {
  const Machine machine = read("azure-ndv2");
  EXPECT_EQ(machine.processors.cpus, 40);
  EXPECT_THAT(nics(machine), ElementsAre("eth0 hv_netvsc 40 *", "mlx5_0 - 100 mlx5_0"));
  EXPECT_THAT(matrix(machine), ElementsAre("PHB", "PHB", "PHB", "PHB", "SYS", "SYS", "SYS", "SYS"));
  ASSERT_EQ(machine.gpus.size(), 8u);
  EXPECT_EQ(machine.gpus[0].uuid, "GPU-00000001-0000-0000-0000-000000000000")
      << "the driver reports the UUID without NVML";
  EXPECT_EQ(machine.gpus[0].model, "Tesla V100-SXM2-32GB");
  EXPECT_EQ(machine.gpus[1].uuid, "0002:00:00.0") << "the driver writes question marks while it does not know the UUID";
  EXPECT_EQ(machine.paths[1].gpu, "0002:00:00.0");
}

TEST(Machine, PortsOfAnInfinibandDeviceAreNics) {
  MachineTree tree("azure-ndv2");
  tree.write("sys/class/infiniband/mlx5_0/ports/2/state", "4: ACTIVE");
  tree.write("sys/class/infiniband/mlx5_0/ports/2/rate", "56 Gb/sec (4X FDR)");
  const Machine machine = read_machine(tree.source()).value();
  EXPECT_THAT(nics(machine), ElementsAre("eth0 hv_netvsc 40 *", "mlx5_0:1 - 100 mlx5_0", "mlx5_0:2 - 56 mlx5_0"));
  for (const api::Nic& nic : machine.nics) EXPECT_EQ(nic.speed_source, SpeedSource::kSysfs) << nic.name;
}

TEST(Machine, Workstation) {
  const Machine machine = read("workstation");
  EXPECT_EQ(machine.gpus.size(), 4u);
  EXPECT_THAT(nics(machine), ElementsAre("enp66s0 ice 25 *"));
  EXPECT_THAT(matrix(machine), ElementsAre("PHB", "PHB", "PHB", "PHB"));
}

TEST(Machine, SwitchNextToCpuCounts) {
  const Machine dgx = read("dgx-a100");
  ASSERT_EQ(dgx.gpus.size(), 4u);
  EXPECT_EQ(dgx.gpus[0].pci_switch, "0000:01:00.0") << "its own switch is behind that one";
  EXPECT_EQ(dgx.gpus[3].pci_switch, "0000:81:00.0");
  EXPECT_EQ(dgx.nics[1].pci_switch, "0000:01:00.0") << dgx.nics[1].name;
  EXPECT_EQ(dgx.nics[0].pci_switch, "") << dgx.nics[0].name;
  EXPECT_EQ(read("azure-ndv2").gpus[0].pci_switch, "");
}

TEST(Machine, NvSwitchJoinsAllGpus) {
  MachineTree tree("hgx-h100");
  EXPECT_EQ(read_machine(tree.source())->gpus[0].nvlink_group, -1);
  tree.write("sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de");
  tree.write("sys/bus/pci/devices/0000:05:00.0/class", "0x068000");
  const absl::StatusOr<Machine> machine = read_machine(tree.source());
  ASSERT_TRUE(machine.ok()) << machine.status();
  for (const api::Gpu& gpu : machine->gpus) EXPECT_EQ(gpu.nvlink_group, 0);
  EXPECT_EQ(machine->gpus.size(), 8u) << "an NVSwitch is no GPU";
}

TEST(Machine, CpuWithABond) {
  const Machine machine = read("cpu-bond");
  EXPECT_THAT(machine.gpus, IsEmpty());
  EXPECT_THAT(machine.paths, IsEmpty());
  EXPECT_THAT(nics(machine),
              ElementsAre("bond0 - 50", "bond0.100 - 50 *", "eno1 tg3 0", "eth0 mlx5_core 25", "eth1 mlx5_core 25"));
  EXPECT_EQ(machine.default_device, "bond0.100");
  EXPECT_EQ(read_traffic(MachineTree("cpu-bond").tree(), "bond0.100")->sent_bytes, 2000);
}

TEST(Machine, NodeInAContainer) {
  const Machine machine = read("veth-node");
  EXPECT_THAT(nics(machine), ElementsAre("eth0 - 0 *"));
  ASSERT_EQ(machine.nics.size(), 1u);
  EXPECT_EQ(machine.nics[0].speed_source, SpeedSource::kUnknown);
}

TEST(Machine, RecordedVirtualMachine) {
  const Machine machine = read("virtio-vm");
  EXPECT_EQ(machine.processors.cpus, 2);
  EXPECT_EQ(machine.processors.numa_nodes, 1u);
  EXPECT_THAT(nics(machine), ElementsAre("eth0 virtio_net 0 *"));
  ASSERT_EQ(machine.nics.size(), 1u);
  EXPECT_EQ(machine.nics[0].pci_address, "0000:00:03.0");
}

TEST(Machine, EmptyTreeIsAMachineWithoutDevices) {
  const MachineTree tree;
  const absl::StatusOr<Machine> machine = read_machine(tree.source());
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_THAT(machine->nics, IsEmpty());
  EXPECT_EQ(machine->default_device, "");
}

TEST(Machine, TopologyThatHwlocCantReadIsRefused) {
  MachineSource source;
  source.hwloc.xml = "<topology>";
  EXPECT_FALSE(read_machine(source).ok());
  source.hwloc = {"", "no such:thing"};
  EXPECT_EQ(read_machine(source).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gleaner::discover
