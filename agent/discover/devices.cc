#include "agent/discover/devices.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/discover/gpus.h"
#include "agent/discover/pci.h"

namespace gleaner::discover {
namespace {

struct Placed {
  api::Nic nic;
  PciPlace place;
};

void set_speed(api::Nic& nic, double bits_per_second) {
  nic.bits_per_second = bits_per_second;
  nic.speed_source = bits_per_second > 0 ? api::SpeedSource::kSysfs : api::SpeedSource::kUnknown;
}

std::vector<Placed> choose_nics(const std::vector<NetDevice>& devices, const std::string& default_device) {
  const std::vector<const NetDevice*> default_chain = with_lower(devices, default_device);
  std::vector<Placed> chosen;
  for (const NetDevice& device : devices) {
    const bool carries_default = std::find(default_chain.begin(), default_chain.end(), &device) != default_chain.end();
    const bool own = !device.driver.empty() && !device.virtual_function;
    if (!own && !carries_default) continue;
    Placed placed;
    placed.nic.name = device.name;
    placed.nic.driver = device.driver;
    placed.nic.pci_address = device.place.address;
    placed.nic.numa_node = device.place.numa_node;
    placed.nic.default_route = device.name == default_device;
    set_speed(placed.nic, device.bits_per_second.value_or(0));
    placed.place = device.place;
    chosen.push_back(std::move(placed));
  }
  return chosen;
}

// Marks NICs that are also RDMA devices, and adds RDMA devices that have no network device (InfiniBand without IPoIB).
void add_rdma(const std::vector<RdmaPort>& ports, std::vector<Placed>& nics) {
  for (const RdmaPort& port : ports) {
    bool found = false;
    for (Placed& placed : nics) {
      const auto& names = port.net_devices;
      if (std::find(names.begin(), names.end(), placed.nic.name) == names.end()) continue;
      found = true;
      placed.nic.rdma_device = port.device;
      if (placed.nic.bits_per_second == 0 && port.active) set_speed(placed.nic, port.bits_per_second);
    }
    if (found || !port.net_devices.empty()) continue;  // its network device belongs to a pod, or was left out
    Placed placed;
    placed.nic.name = port.name;
    placed.nic.rdma_device = port.device;
    placed.nic.pci_address = port.place.address;
    placed.nic.numa_node = port.place.numa_node;
    set_speed(placed.nic, port.active ? port.bits_per_second : 0);
    placed.place = port.place;
    nics.push_back(std::move(placed));
  }
}

// Returns the PCIe switch next to the CPU.
std::string outermost_switch(const PciPlace& place) { return place.switches.empty() ? "" : place.switches.back(); }

// NVSwitches are PCI bridges of class "other", and join all GPUs of their machine.
bool has_nvswitch(const Tree& tree) {
  constexpr uint32_t kNvidia = 0x10de, kOtherBridge = 0x0680;
  for (const std::string& address : tree.list("sys/bus/pci/devices")) {
    const std::string folder = absl::StrCat("sys/bus/pci/devices/", address);
    const auto vendor = static_cast<uint32_t>(tree.read_number(absl::StrCat(folder, "/vendor")).value_or(0));
    const uint32_t kind = static_cast<uint32_t>(tree.read_number(absl::StrCat(folder, "/class")).value_or(0)) >> 8;
    if (vendor == kNvidia && kind == kOtherBridge) return true;
  }
  return false;
}

}  // namespace

Devices read_devices(const Tree& tree, const std::string& nvml_library) {
  Devices found;
  const std::vector<NetDevice> devices = read_net_devices(tree);
  found.default_device = read_default_device(tree, devices);
  std::vector<Placed> nics = choose_nics(devices, found.default_device);
  add_rdma(read_rdma_ports(tree), nics);

  Gpus gpus = read_gpus(tree, nvml_library);
  found.gpus = std::move(gpus.list);
  found.nvlinks = std::move(gpus.nvlinks);
  found.without_nvml = std::move(gpus.without_nvml);
  found.nvml_failures = std::move(gpus.nvml_failures);
  const bool is_switched = !found.gpus.empty() && has_nvswitch(tree);
  for (api::Gpu& gpu : found.gpus) {
    const PciPlace place = read_pci_place(tree, absl::StrCat("sys/bus/pci/devices/", gpu.pci_address));
    gpu.pci_switch = outermost_switch(place);
    if (is_switched) gpu.nvlink_group = 0;
    for (const Placed& placed : nics) {
      if (placed.place.address.empty()) continue;
      found.paths.push_back({gpu.uuid, placed.nic.name, path_type(place, placed.place)});
    }
  }
  for (Placed& placed : nics) {
    placed.nic.pci_switch = outermost_switch(placed.place);
    found.nics.push_back(std::move(placed.nic));
  }
  return found;
}

}  // namespace gleaner::discover
