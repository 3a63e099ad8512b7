#include "agent/discover/nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/discover/pci.h"
#include "common/base/status_macros.h"

namespace gleaner::discover {
namespace {

// The part of NVML's C interface that this file uses, with the published layout (nvml.h of CUDA 9 and later). NVML
// keeps these entry points and sizes; a changed one gets a new version in its name.
using Device = struct NvmlDevice*;
constexpr int kSuccess = 0, kNotSupported = 3, kFunctionNotFound = 13, kGpuIsLost = 15;  // nvmlReturn_t
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
    const bool whole = nvml.find("nvmlInit_v2", nvml.init) && nvml.find("nvmlShutdown", nvml.shutdown) &&
                       nvml.find("nvmlDeviceGetCount_v2", nvml.count) &&
                       nvml.find("nvmlDeviceGetHandleByIndex_v2", nvml.handle);
    const bool has_uuid = nvml.find("nvmlDeviceGetUUID", nvml.uuid);
    const bool has_address = nvml.find("nvmlDeviceGetPciInfo_v3", nvml.pci_info);
    nvml.find("nvmlErrorString", nvml.error_string);
    nvml.find("nvmlDeviceGetName", nvml.name);
    nvml.find("nvmlDeviceGetMemoryInfo", nvml.memory_info);
    if (!whole || (!has_uuid && !has_address)) {
      return absl::UnavailableError(absl::StrCat(path, " lacks functions that NVML of CUDA 9 and later has"));
    }
    return nvml;
  }

  absl::Status check(int code, const char* what) const {
    if (code == kSuccess) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("NVML: ", what, ": ", text_of(code)));
  }

  std::string text_of(int code) const {
    return error_string == nullptr ? absl::StrCat("error ", code) : std::string(error_string(code));
  }

  // Null: the library lacks the function.
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

// Reads one GPU, and records the fields that NVML fails to read.
class GpuReader {
 public:
  GpuReader(const Nvml& nvml, unsigned index) : nvml_(nvml), index_(index) {}

  // Returns nothing if NVML has lost the GPU or cannot identify it.
  std::optional<api::Gpu> read() {
    if (const int code = nvml_.handle(index_, &device_); code != kSuccess) return leave_out(nvml_.text_of(code));
    std::array<char, kTextBytes> text{};
    PciInfo pci{};
    MemoryInfo memory{};
    api::Gpu gpu;
    if (get("UUID", nvml_.uuid, text.data(), kTextBytes)) gpu.uuid = text.data();
    if (get("model", nvml_.name, text.data(), kTextBytes)) gpu.model = text.data();
    if (get("PCI address", nvml_.pci_info, &pci)) gpu.pci_address = normal_pci_address(pci.bus_id);
    if (get("memory size", nvml_.memory_info, &memory)) gpu.memory_bytes = memory.total;
    if (lost_) return leave_out(nvml_.text_of(kGpuIsLost));
    if (gpu.uuid.empty() && gpu.pci_address.empty()) return leave_out("it has neither UUID nor PCI address");
    return gpu;
  }

  const std::vector<std::string>& failures() const { return failures_; }

 private:
  std::nullopt_t leave_out(absl::string_view why) {
    failures_ = {absl::StrCat("GPU ", index_, " is left out: ", why)};
    return std::nullopt;
  }

  // A field that NVML does not support is absent without a failure: memory, for example, where the GPU shares the
  // CPU's.
  template <typename Function, typename... Arguments>
  bool get(absl::string_view field, Function function, Arguments... arguments) {
    const int code = function == nullptr ? kFunctionNotFound : function(device_, arguments...);
    if (code == kGpuIsLost) lost_ = true;
    if (code != kSuccess && code != kNotSupported) {
      failures_.push_back(absl::StrCat("GPU ", index_, " has no ", field, ": ", nvml_.text_of(code)));
    }
    return code == kSuccess;
  }

  const Nvml& nvml_;
  const unsigned index_;
  Device device_ = nullptr;
  bool lost_ = false;
  std::vector<std::string> failures_;
};

absl::StatusOr<NvmlGpus> read_each_gpu(const Nvml& nvml) {
  unsigned count = 0;
  GLN_RETURN_IF_ERROR(nvml.check(nvml.count(&count), "the number of GPUs"));
  NvmlGpus gpus;
  gpus.list.reserve(count);
  for (unsigned i = 0; i < count; ++i) {
    GpuReader reader(nvml, i);
    if (std::optional<api::Gpu> gpu = reader.read()) gpus.list.push_back(*std::move(gpu));
    gpus.failures.insert(gpus.failures.end(), reader.failures().begin(), reader.failures().end());
  }
  return gpus;
}

}  // namespace

absl::StatusOr<NvmlGpus> read_nvml_gpus(const std::string& library) {
  GLN_ASSIGN_OR_RETURN(const Nvml nvml, Nvml::open(library));
  GLN_RETURN_IF_ERROR(nvml.check(nvml.init(), "init"));
  absl::StatusOr<NvmlGpus> gpus = read_each_gpu(nvml);
  nvml.shutdown();
  return gpus;
}

}  // namespace gleaner::discover
