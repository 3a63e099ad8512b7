// Tests of the distances between PCI devices, in NCCL's terms.
#include "agent/discover/pci.h"

#include <gmock/gmock.h>

#include "tests/unit/agent/machine_tree.h"

namespace gleaner::discover {
namespace {

using api::PathType;
using testing::ElementsAre;
using testing::IsEmpty;

PciPlace add(MachineTree& tree, const std::string& chain, int numa) {
  const std::string folder = "sys/devices/pci0000:00/" + chain;
  const std::string address(last_part(chain));
  tree.write(folder + "/numa_node", std::to_string(numa));
  tree.link("sys/bus/pci/devices/" + address, "../../../../" + folder);
  return read_pci_place(tree.tree(), "sys/bus/pci/devices/" + address);
}

TEST(PciPlace, SwitchesAreEverySecondBridge) {
  MachineTree tree;
  EXPECT_THAT(add(tree, "0000:03:00.0", 0).switches, IsEmpty());
  EXPECT_THAT(add(tree, "0000:00:01.0/0000:04:00.0", 0).switches, IsEmpty()) << "a root port is no switch";
  EXPECT_THAT(add(tree, "0000:00:01.0/0000:10:00.0/0000:11:00.0/0000:12:00.0", 1).switches,
              ElementsAre("0000:10:00.0"));
  const PciPlace deep = add(tree, "0000:00:01.0/0000:10:00.0/0000:11:04.0/0000:20:00.0/0000:21:00.0/0000:22:00.0", 1);
  EXPECT_THAT(deep.switches, ElementsAre("0000:20:00.0", "0000:10:00.0"));
  EXPECT_EQ(deep.address, "0000:22:00.0");
  EXPECT_EQ(deep.numa_node, 1);
}

TEST(PciPlace, EntryBelowTheDevice) {
  MachineTree tree;
  add(tree, "0000:03:00.0", 0);
  tree.write("sys/devices/pci0000:00/0000:03:00.0/virtio2/net/eth0/speed", "-1");
  tree.link("sys/class/net/eth0", "../../devices/pci0000:00/0000:03:00.0/virtio2/net/eth0");
  EXPECT_EQ(read_pci_place(tree.tree(), "sys/class/net/eth0").address, "0000:03:00.0");
  EXPECT_EQ(read_pci_place(tree.tree(), "sys/class/net/eth9").address, "");
}

TEST(PathType, NearestFirst) {
  MachineTree tree;
  const std::string up = "0000:00:01.0/0000:10:00.0/";
  const PciPlace gpu = add(tree, up + "0000:11:00.0/0000:12:00.0", 0);
  const PciPlace same_card = add(tree, up + "0000:11:00.0/0000:12:00.1", 0);
  const PciPlace same_switch = add(tree, up + "0000:11:01.0/0000:13:00.0", 0);
  const PciPlace lower_switch = add(tree, up + "0000:11:02.0/0000:20:00.0/0000:21:00.0/0000:22:00.0", 0);
  const PciPlace other_port = add(tree, "0000:00:02.0/0000:30:00.0", 0);
  const PciPlace other_socket = add(tree, "0000:80:01.0/0000:81:00.0", 1);
  const PciPlace unknown_socket = add(tree, "0000:00:03.0/0000:32:00.0", -1);
  EXPECT_EQ(path_type(gpu, same_card), PathType::kLoc);
  EXPECT_EQ(path_type(gpu, same_switch), PathType::kPix);
  EXPECT_EQ(path_type(gpu, lower_switch), PathType::kPxb);
  EXPECT_EQ(path_type(lower_switch, gpu), PathType::kPxb) << "distances are the same both ways";
  EXPECT_EQ(path_type(gpu, other_port), PathType::kPhb);
  EXPECT_EQ(path_type(gpu, other_socket), PathType::kSys);
  EXPECT_EQ(path_type(gpu, unknown_socket), PathType::kPhb) << "-1 stands for the only node";
  EXPECT_EQ(path_type(gpu, PciPlace{}), PathType::kSys);
}

TEST(PciAddress, HasOneSpelling) {
  EXPECT_EQ(normal_pci_address("00000000:3B:00.0"), "0000:3b:00.0");
  EXPECT_EQ(normal_pci_address("0000:3b:00.0"), "0000:3b:00.0");
  EXPECT_EQ(normal_pci_address("00010000:3B:00.0"), "00010000:3b:00.0") << "a domain above 0xffff";
  EXPECT_TRUE(is_pci_address("10000:e1:00.0"));
  EXPECT_FALSE(is_pci_address("pci0000:3a"));
  EXPECT_FALSE(is_pci_address("virtio2"));
  EXPECT_FALSE(is_pci_address("0000:3b:00"));
}

}  // namespace
}  // namespace gleaner::discover
