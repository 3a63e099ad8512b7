// Where a device sits on the PCI buses, and how far two devices are apart, in NCCL's order.
//
// Source: NVIDIA/nccl, src/include/graph.h (PATH_LOC, PATH_PIX, PATH_PXB, PATH_PHB, PATH_SYS) and src/graph/xml.cc,
// which takes two steps up a device's sysfs path for one PCIe switch: from the device over the switch's downstream port
// to its upstream port. NVLink (NVL, NVB), C2C, P2C and PXN are ways between GPUs, or by them, and no place of a NIC.
// Not done here: NCCL also takes the two levels that some Broadcom switches show for one.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/discover/tree.h"
#include "operator/types/node_profile.h"

namespace gleaner::discover {

struct PciPlace {
  std::string address;                // 0000:3b:00.0; empty: no PCI device
  std::vector<std::string> switches;  // upstream ports from the device to the root, nearest first
  int numa_node = -1;                 // -1: not known
};

// The place of the device whose folder `path` is (or lies under): "sys/class/net/eth0/device".
PciPlace read_pci_place(const Tree& tree, absl::string_view path);

// Devices of one function number more or less are the same device.
types::PathType path_type(const PciPlace& a, const PciPlace& b);

// "0000:3b:00.0" of "00000000:3B:00.0", as NVML writes it; anything else as it is, in lower case.
std::string normal_pci_address(absl::string_view address);

bool is_pci_address(absl::string_view text);

}  // namespace gleaner::discover
