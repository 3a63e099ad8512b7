#include "agent/discover/gpus.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/discover/nvlinks.h"
#include "agent/discover/nvml.h"
#include "agent/discover/pci.h"

namespace gleaner::discover {
namespace {

constexpr uint32_t kNvidia = 0x10de, kVga = 0x0300, k3d = 0x0302;  // PCI vendor and classes

// Reads model and UUID from the driver's /proc/driver/nvidia/gpus/ADDRESS/information, with lines such as "Model: \t
// NVIDIA H100".
void read_driver_information(const Tree& tree, api::Gpu& gpu) {
  const std::string text =
      tree.read(absl::StrCat("proc/driver/nvidia/gpus/", gpu.pci_address, "/information")).value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (sides.size() != 2) continue;
    const absl::string_view value = absl::StripAsciiWhitespace(sides[1]);
    if (sides[0] == "Model") gpu.model = std::string(value);
    if (sides[0] == "GPU UUID" && value.find('?') == absl::string_view::npos) gpu.uuid = std::string(value);
  }
}

std::vector<api::Gpu> read_pci_gpus(const Tree& tree) {
  std::vector<api::Gpu> gpus;
  for (const std::string& address : tree.list("sys/bus/pci/devices")) {
    const std::string folder = absl::StrCat("sys/bus/pci/devices/", address);
    const auto vendor = static_cast<uint32_t>(tree.read_number(absl::StrCat(folder, "/vendor")).value_or(0));
    const uint32_t kind = static_cast<uint32_t>(tree.read_number(absl::StrCat(folder, "/class")).value_or(0)) >> 8;
    if (vendor != kNvidia || (kind != kVga && kind != k3d)) continue;
    api::Gpu gpu;
    gpu.pci_address = address;
    read_driver_information(tree, gpu);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

// Fills in fields of `gpu` that NVML did not read, from the same GPU of the bus.
void complete(api::Gpu& gpu, const std::vector<api::Gpu>& on_bus) {
  const auto same = std::find_if(on_bus.begin(), on_bus.end(), [&gpu](const api::Gpu& other) {
    return gpu.pci_address.empty() ? gpu.uuid == other.uuid : gpu.pci_address == other.pci_address;
  });
  if (same == on_bus.end()) return;
  if (gpu.uuid.empty()) gpu.uuid = same->uuid;
  if (gpu.model.empty()) gpu.model = same->model;
  gpu.pci_address = same->pci_address;
}

}  // namespace

Gpus read_gpus(const Tree& tree, const std::string& nvml_library) {
  Gpus gpus;
  gpus.list = read_pci_gpus(tree);
  std::optional<std::vector<NvlinkEnds>> nvlink_ends;
  if (!gpus.list.empty() && !nvml_library.empty()) {
    absl::StatusOr<NvmlGpus> by_nvml = read_nvml_gpus(nvml_library);
    if (by_nvml.ok()) {
      for (api::Gpu& gpu : by_nvml->list) complete(gpu, gpus.list);
      gpus.list = std::move(by_nvml->list);
      gpus.nvml_failures = std::move(by_nvml->failures);
      nvlink_ends = std::move(by_nvml->nvlinks);
    } else {
      gpus.without_nvml = std::string(by_nvml.status().message());
    }
  }
  for (api::Gpu& gpu : gpus.list) {
    if (gpu.uuid.empty()) gpu.uuid = gpu.pci_address;
    gpu.numa_node = read_pci_place(tree, absl::StrCat("sys/bus/pci/devices/", gpu.pci_address)).numa_node;
  }
  if (nvlink_ends.has_value()) gpus.nvlinks = join_by_nvlinks(*nvlink_ends, gpus.list);
  std::sort(gpus.list.begin(), gpus.list.end(),
            [](const api::Gpu& a, const api::Gpu& b) { return a.pci_address < b.pci_address; });
  return gpus;
}

}  // namespace gleaner::discover
