#include "agent/discover/machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/discover/gpus.h"
#include "agent/discover/pci.h"
#include "common/base/status_macros.h"

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
    placed.nic.name = placed.nic.rdma_device = port.device;
    placed.nic.pci_address = port.place.address;
    placed.nic.numa_node = port.place.numa_node;
    set_speed(placed.nic, port.active ? port.bits_per_second : 0);
    placed.place = port.place;
    nics.push_back(std::move(placed));
  }
}

// The line reads "MemTotal:       24669624 kB".
uint64_t read_total_memory(const Tree& tree) {
  for (const absl::string_view line : absl::StrSplit(tree.read("proc/meminfo").value_or(""), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kibibytes = 0;
    if (words.size() >= 2 && words[0] == "MemTotal:" && absl::SimpleAtoi(words[1], &kibibytes)) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace

absl::StatusOr<Machine> read_machine(const MachineSource& source) {
  Machine machine;
  GLN_ASSIGN_OR_RETURN(machine.processors, read_processors(source.hwloc));
  if (const uint64_t bytes = read_total_memory(source.tree); bytes > 0) machine.processors.memory_bytes = bytes;

  const std::vector<NetDevice> devices = read_net_devices(source.tree);
  machine.default_device = read_default_device(source.tree, devices);
  std::vector<Placed> nics = choose_nics(devices, machine.default_device);
  add_rdma(read_rdma_ports(source.tree), nics);

  Gpus gpus = read_gpus(source.tree, source.nvml_library);
  machine.gpus = std::move(gpus.list);
  machine.without_nvml = std::move(gpus.without_nvml);
  for (const api::Gpu& gpu : machine.gpus) {
    const PciPlace place = read_pci_place(source.tree, absl::StrCat("sys/bus/pci/devices/", gpu.pci_address));
    for (const Placed& placed : nics) {
      if (placed.place.address.empty()) continue;
      machine.paths.push_back({gpu.uuid, placed.nic.name, path_type(place, placed.place)});
    }
  }
  for (Placed& placed : nics) machine.nics.push_back(std::move(placed.nic));
  return machine;
}

}  // namespace gleaner::discover
