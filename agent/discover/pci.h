// Functions that return the places of devices on PCI, and the distance between two devices in NCCL's order.
//
// Source: NVIDIA/nccl, src/include/graph.h (PATH_LOC, PATH_PIX, PATH_PXB, PATH_PHB, PATH_SYS) and src/graph/xml.cc. In
// a device's sysfs path a PCIe switch takes two levels, its downstream port and its upstream port. NCCL's NVL, NVB,
// C2C, P2C and PXN are paths between GPUs, or through GPUs, and do not describe the place of a NIC. Unlike NCCL,
// path_type() does not merge the two levels that some Broadcom switches show.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/discover/tree.h"
#include "common/api/node_profile.h"

namespace gleaner::discover {

struct PciPlace {
  std::string address;                // 0000:3b:00.0; empty: no PCI device
  std::vector<std::string> switches;  // the upstream ports of PCIe switches, from the device to the root
  int numa_node = -1;                 // -1: unknown
};

// Returns the place of the device whose folder is `path` or contains it, such as "sys/class/net/eth0/device".
PciPlace read_pci_place(const Tree& tree, absl::string_view path);

// Returns the distance between two devices. PCI functions of one device count as the same device.
api::PathType path_type(const PciPlace& a, const PciPlace& b);

// Returns "0000:3b:00.0" for "00000000:3B:00.0", the form of NVML. For any other text only changes the case to lower.
std::string normal_pci_address(absl::string_view address);

bool is_pci_address(absl::string_view text);

}  // namespace gleaner::discover
