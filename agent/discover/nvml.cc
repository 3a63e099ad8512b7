#include "agent/discover/nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "agent/discover/pci.h"
#include "common/base/status_macros.h"

namespace gleaner::discover {
namespace {

// The part of NVML's C interface that this file uses, with the published layout (nvml.h of CUDA 9 and later). NVML
// keeps these entry points and sizes; a changed one gets a new version in its name.
using Device = struct NvmlDevice*;
constexpr int kSuccess = 0;
constexpr unsigned kTextBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE

struct PciInfo {  // nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct MemoryInfo {  // nvmlMemory_t of nvmlDeviceGetMemoryInfo
  unsigned long long total, free, used;
};
static_assert(sizeof(MemoryInfo) == 24);

struct Close {
  void operator()(void* library) const { dlclose(library); }
};

class Nvml {
 public:
  static absl::StatusOr<Nvml> open(const std::string& path) {
    Nvml nvml;
    nvml.library_.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (nvml.library_ == nullptr) {
      const char* why = dlerror();
      return absl::NotFoundError(absl::StrCat("no NVML: ", why == nullptr ? path : why));
    }
    const bool whole =
        nvml.find("nvmlInit_v2", nvml.init) && nvml.find("nvmlShutdown", nvml.shutdown) &&
        nvml.find("nvmlErrorString", nvml.error_string) && nvml.find("nvmlDeviceGetCount_v2", nvml.count) &&
        nvml.find("nvmlDeviceGetHandleByIndex_v2", nvml.handle) && nvml.find("nvmlDeviceGetUUID", nvml.uuid) &&
        nvml.find("nvmlDeviceGetName", nvml.name) && nvml.find("nvmlDeviceGetPciInfo_v3", nvml.pci_info) &&
        nvml.find("nvmlDeviceGetMemoryInfo", nvml.memory_info);
    if (!whole) return absl::UnavailableError(absl::StrCat(path, " lacks functions that NVML of CUDA 9 and later has"));
    return nvml;
  }

  absl::Status check(int code, const char* what) const {
    if (code == kSuccess) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("NVML: ", what, ": ", error_string(code)));
  }

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*pci_info)(Device, PciInfo*) = nullptr;
  int (*memory_info)(Device, MemoryInfo*) = nullptr;

 private:
  template <typename Function>
  bool find(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_.get(), symbol));
    return function != nullptr;
  }

  std::unique_ptr<void, Close> library_;
};

absl::StatusOr<api::Gpu> read_gpu(const Nvml& nvml, unsigned index) {
  Device device = nullptr;
  GLN_RETURN_IF_ERROR(nvml.check(nvml.handle(index, &device), "the handle of a GPU"));
  std::array<char, kTextBytes> text{};
  api::Gpu gpu;
  GLN_RETURN_IF_ERROR(nvml.check(nvml.uuid(device, text.data(), kTextBytes), "a GPU's uuid"));
  gpu.uuid = text.data();
  if (nvml.name(device, text.data(), kTextBytes) == kSuccess) gpu.model = text.data();
  PciInfo pci{};
  GLN_RETURN_IF_ERROR(nvml.check(nvml.pci_info(device, &pci), "a GPU's PCI address"));
  gpu.pci_address = normal_pci_address(pci.bus_id);
  MemoryInfo memory{};  // not supported where the GPU shares the CPU's memory
  if (nvml.memory_info(device, &memory) == kSuccess) gpu.memory_bytes = memory.total;
  return gpu;
}

absl::StatusOr<std::vector<api::Gpu>> read_gpus(const Nvml& nvml) {
  unsigned count = 0;
  GLN_RETURN_IF_ERROR(nvml.check(nvml.count(&count), "the number of GPUs"));
  std::vector<api::Gpu> gpus;
  gpus.reserve(count);
  for (unsigned i = 0; i < count; ++i) {
    GLN_ASSIGN_OR_RETURN(api::Gpu gpu, read_gpu(nvml, i));
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace

absl::StatusOr<std::vector<api::Gpu>> read_nvml_gpus(const std::string& library) {
  GLN_ASSIGN_OR_RETURN(const Nvml nvml, Nvml::open(library));
  GLN_RETURN_IF_ERROR(nvml.check(nvml.init(), "init"));
  absl::StatusOr<std::vector<api::Gpu>> gpus = read_gpus(nvml);
  nvml.shutdown();
  return gpus;
}

}  // namespace gleaner::discover
