// Functions that read network devices, the default route and RDMA ports from sysfs and procfs.
//
// A mount of sysfs shows the network namespace of the process that mounted it. So sys/class/net has the machine's
// devices only if the machine itself mounted it. proc/1/net has the machine's routes: process 1 is in its namespace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/discover/pci.h"
#include "agent/discover/tree.h"

namespace gleaner::discover {

struct NetDevice {
  std::string name;
  std::string driver;                     // empty: virtual (bond, VLAN, bridge, veth)
  PciPlace place;                         // address empty: no PCI device
  bool up = false;                        // operstate is "up", or "unknown" as some virtual devices always report
  bool virtual_function = false;          // of an adapter whose physical function is in the same tree
  std::vector<std::string> lower;         // a bond's NICs, a VLAN's device, a bridge's ports
  std::optional<double> bits_per_second;  // the speed that the device reports; absent: the device can't know it
};

struct RdmaPort {
  std::string device;  // mlx5_0
  std::string name;    // "mlx5_0", or "mlx5_0:2" if the device has several ports; GLEANER_RDMA_DEVICE takes both
  PciPlace place;
  bool active = false;
  double bits_per_second = 0;            // 0: unknown
  std::vector<std::string> net_devices;  // devices that share the port; empty: InfiniBand without IPoIB
};

std::vector<NetDevice> read_net_devices(const Tree& tree);
std::vector<RdmaPort> read_rdma_ports(const Tree& tree);

// Returns the device that carries traffic to other machines: the device of the default route with the lowest metric
// (IPv4, else IPv6). Without a default route, returns the fastest physical device that is up. Empty: there is none.
std::string read_default_device(const Tree& tree, const std::vector<NetDevice>& devices);

// Bytes that a device has received and sent since it came up. read_traffic() returns nullopt if there is no such
// device.
struct Traffic {
  double received_bytes = 0, sent_bytes = 0;
};
std::optional<Traffic> read_traffic(const Tree& tree, const std::string& device);

// Returns device `name` and all devices below it, for example bond0, eth0, eth1.
std::vector<const NetDevice*> with_lower(const std::vector<NetDevice>& devices, const std::string& name);

}  // namespace gleaner::discover
