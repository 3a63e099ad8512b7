// Network devices, the default route and RDMA ports, as sysfs and procfs show them.
//
// They are read under sys/class/net (which shows the network namespace of whoever mounted this sysfs: the machine's
// own, where it is the machine's mount) and under proc/1/net, for the same reason.
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
  PciPlace place;                         // address empty: no PCI device under it
  bool up = false;                        // operstate up, or unknown, which some virtual devices always are
  bool virtual_function = false;          // of an adapter that this machine has whole
  std::vector<std::string> lower;         // a bond's NICs, a VLAN's device, a bridge's ports
  std::optional<double> bits_per_second;  // what the device says, where it can know
};

struct RdmaPort {
  std::string device;  // mlx5_0
  PciPlace place;
  bool active = false;
  double bits_per_second = 0;            // 0: not known
  std::vector<std::string> net_devices;  // that share the port; none: InfiniBand without IPoIB
};

std::vector<NetDevice> read_net_devices(const Tree& tree);
std::vector<RdmaPort> read_rdma_ports(const Tree& tree);

// The device that the traffic to other machines leaves by: that of the default route with the lowest metric (IPv4, else
// IPv6); without one, the fastest device that is up. Empty: there is none.
std::string read_default_device(const Tree& tree, const std::vector<NetDevice>& devices);

// Bytes that the device has received and sent since it came up; none: no such device.
struct Traffic {
  double received_bytes = 0, sent_bytes = 0;
};
std::optional<Traffic> read_traffic(const Tree& tree, const std::string& device);

// The devices that `name` stands on, itself first: bond0, eth0, eth1.
std::vector<const NetDevice*> with_lower(const std::vector<NetDevice>& devices, const std::string& name);

}  // namespace gleaner::discover
