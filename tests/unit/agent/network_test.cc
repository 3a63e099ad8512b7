// Tests of reading the kernel's reports about network devices, and of deciding which speeds are credible.
#include "agent/discover/network.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/agent/machine_tree.h"

namespace gleaner::discover {
namespace {

using testing::DoubleEq;
using testing::Eq;
using testing::Optional;

void add_virtual(MachineTree& tree, const std::string& name, const std::string& state, const std::string& speed,
                 const std::vector<std::string>& lower = {}) {
  const std::string folder = "sys/devices/virtual/net/" + name;
  tree.write(folder + "/operstate", state);
  if (!speed.empty()) tree.write(folder + "/speed", speed);
  for (const std::string& below : lower) tree.link(folder + "/lower_" + below, "../" + below);
  tree.link("sys/class/net/" + name, "../../devices/virtual/net/" + name);
}

void add_physical(MachineTree& tree, const std::string& name, const std::string& state, const std::string& speed) {
  add_virtual(tree, name, state, speed);
  tree.write("sys/devices/card/" + name + "/uevent", "");
  tree.link("sys/devices/virtual/net/" + name + "/device", "../../../card/" + name);
}

std::optional<double> speed(const MachineTree& tree, const std::string& name) {
  for (const NetDevice& device : read_net_devices(tree.tree())) {
    if (device.name == name) return device.bits_per_second;
  }
  ADD_FAILURE() << "no device " << name;
  return std::nullopt;
}

TEST(Speed, IsBelievedOnlyWhereTheKernelCanKnow) {
  struct Case {
    const char* text;
    std::optional<double> expected;
  };
  for (const Case& c : {Case{"25000", 25e9}, Case{"-1", {}}, Case{"0", {}}, Case{"", {}}, Case{"4294967295", {}},
                        Case{"fast", {}}, Case{"400000", 400e9}}) {
    MachineTree tree;
    add_physical(tree, "eth0", "up", c.text);
    EXPECT_THAT(speed(tree, "eth0"), Eq(c.expected)) << c.text;
  }
  MachineTree tree;
  add_virtual(tree, "veth0", "up", "10000");
  EXPECT_EQ(speed(tree, "veth0"), std::nullopt) << "a veth's 10 Gbit/s is a constant of its driver";
}

TEST(Speed, BondFollowsItsMode) {
  for (const auto& [mode, expected] :
       {std::pair{"802.3ad 4", 50e9}, {"balance-rr 0", 50e9}, {"active-backup 1", 25e9}}) {
    MachineTree tree;
    add_physical(tree, "eth0", "up", "25000");
    add_physical(tree, "eth1", "up", "25000");
    add_virtual(tree, "bond0", "up", "-1", {"eth0", "eth1"});
    tree.write("sys/devices/virtual/net/bond0/bonding/mode", mode);
    EXPECT_THAT(speed(tree, "bond0"), Optional(DoubleEq(expected))) << mode;
  }
}

TEST(Speed, BondSumsDevicesThatAreUp) {
  MachineTree tree;
  add_physical(tree, "eth0", "up", "25000");
  add_physical(tree, "eth1", "down", "25000");
  add_virtual(tree, "bond0", "up", "", {"eth0", "eth1"});
  tree.write("sys/devices/virtual/net/bond0/bonding/mode", "802.3ad 4");
  EXPECT_THAT(speed(tree, "bond0"), Optional(DoubleEq(25e9)));
  tree.write("sys/devices/virtual/net/eth1/operstate", "up");
  tree.write("sys/devices/virtual/net/eth1/speed", "-1");
  EXPECT_EQ(speed(tree, "bond0"), std::nullopt) << "a sum with a gap is no sum";
}

TEST(Speed, VlanHasTheSpeedOfItsDevice) {
  MachineTree tree;
  add_physical(tree, "eth0", "up", "10000");
  add_virtual(tree, "br0", "up", "", {"eth0"});
  add_virtual(tree, "br0.7", "up", "-1", {"br0"});
  EXPECT_THAT(speed(tree, "br0.7"), Optional(DoubleEq(10e9)));
}

TEST(Speed, CycleOfDevicesIsUnknown) {
  MachineTree tree;
  add_virtual(tree, "a", "up", "", {"b"});
  add_virtual(tree, "b", "up", "", {"a"});
  EXPECT_EQ(speed(tree, "a"), std::nullopt);
  EXPECT_EQ(with_lower(read_net_devices(tree.tree()), "a").size(), 2u);
}

std::string routes(const std::vector<std::string>& lines) {
  std::string text = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  return text;
}

TEST(DefaultDevice, HasTheLowestMetric) {
  MachineTree tree;
  tree.write("proc/1/net/route", routes({"wlan0 00000000 0100000A 0003 0 0 600 00000000 0 0 0",
                                         "eth0 00000000 0100000A 0003 0 0 100 00000000 0 0 0",
                                         "eth9 00000000 00000000 0201 0 0 0 00000000 0 0 0",  // rejects
                                         "tun0 00000000 0100000A 0003 0 0 0 00000080 0 0 0",  // 0.0.0.0/1
                                         "eth1 0000000A 00000000 0001 0 0 0 00FFFFFF 0 0 0"}));
  EXPECT_EQ(read_default_device(tree.tree(), {}), "eth0");
}

TEST(DefaultDevice, IsThatOfIpv6WithoutIpv4) {
  MachineTree tree;
  const std::string zeros(32, '0');
  tree.write("proc/1/net/route", routes({}));
  tree.write("proc/1/net/ipv6_route",
             absl::StrCat(zeros, " 00 ", zeros, " 00 ", zeros, " ffffffff 00000001 00000000 00200200 lo\n", "fe80",
                          zeros.substr(4), " 40 ", zeros, " 00 ", zeros, " 00000100 1 0 00000001 eth5\n", zeros, " 00 ",
                          zeros, " 00 fe80", zeros.substr(4), " 00000400 1 0 00000003 eth6\n"));
  EXPECT_EQ(read_default_device(tree.tree(), {}), "eth6");
}

TEST(DefaultDevice, WithoutARouteIsTheFastestDeviceThatIsUp) {
  MachineTree tree;
  NetDevice slow, fast, down;
  slow.name = "slow", fast.name = "fast", down.name = "down";
  slow.driver = fast.driver = down.driver = "mlx5_core";
  slow.up = fast.up = true;
  slow.bits_per_second = 1e9, fast.bits_per_second = 25e9, down.bits_per_second = 100e9;
  EXPECT_EQ(read_default_device(tree.tree(), {slow, fast, down}), "fast");
  EXPECT_EQ(read_default_device(tree.tree(), {down}), "");
}

TEST(RdmaPorts, BelongToTheNetDevicesThatTheirGidsName) {
  MachineTree tree;
  const std::string port = "sys/class/infiniband/mlx4_0/ports/";
  for (const char* number : {"1", "2"}) {
    tree.write(port + number + "/state", "4: ACTIVE");
    tree.write(port + number + "/rate", "40 Gb/sec (4X QDR)");
    tree.write(port + number + "/gid_attrs/ndevs/0", std::string("eth") + number);
    tree.write(port + number + "/gid_attrs/ndevs/1", std::string("eth") + number);
  }
  const std::vector<RdmaPort> ports = read_rdma_ports(tree.tree());
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_THAT(ports[0].net_devices, testing::ElementsAre("eth1"));
  EXPECT_THAT(ports[1].net_devices, testing::ElementsAre("eth2"));
  EXPECT_EQ(ports[0].bits_per_second, 40e9);
}

}  // namespace
}  // namespace gleaner::discover
