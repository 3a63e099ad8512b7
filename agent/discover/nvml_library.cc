#include "agent/discover/nvml_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace gleaner::discover {

void Nvml::Close::operator()(void* library) const { dlclose(library); }

template <typename Function>
bool Nvml::find(const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library_.get(), symbol));
  return function != nullptr;
}

absl::StatusOr<Nvml> Nvml::open(const std::string& path) {
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
  nvml.find("nvmlDeviceGetMigMode", nvml.mig_mode);
  nvml.find("nvmlDeviceGetMaxMigDeviceCount", nvml.most_mig_instances);
  nvml.find("nvmlDeviceGetMigDeviceHandleByIndex", nvml.mig_instance);
  nvml.find("nvmlDeviceGetNvLinkCapability", nvml.link_capability);
  nvml.find("nvmlDeviceGetNvLinkState", nvml.link_state);
  nvml.find("nvmlDeviceGetNvLinkRemoteDeviceType", nvml.link_remote_type);
  nvml.find("nvmlDeviceGetNvLinkRemotePciInfo_v2", nvml.link_remote_pci_info);
  nvml.find("nvmlDeviceGetFieldValues", nvml.field_values);
  if (!whole || (!has_uuid && !has_address)) {
    return absl::UnavailableError(absl::StrCat(path, " lacks functions that NVML of CUDA 9 and later has"));
  }
  return nvml;
}

absl::Status Nvml::check(int code, const char* what) const {
  if (code == nvml::kSuccess) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("NVML: ", what, ": ", text_of(code)));
}

std::string Nvml::text_of(int code) const {
  return error_string == nullptr ? absl::StrCat("error ", code) : std::string(error_string(code));
}

}  // namespace gleaner::discover
