#include "comm-lib/device/driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "comm-lib/device/cuda_errors.h"
#include "common/base/status_macros.h"

namespace gleaner::device {
namespace {

std::string version_text(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

// Finds a function by its plain name for kCodedVersion, or by the name of its exported symbol.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {
    get_ = reinterpret_cast<CuGetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  }

  template <typename Function>
  void find(const char* name, const char* exported, Function& function) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult found{};
    const bool asked = get_ != nullptr &&
                       get_(name, &address, kCodedVersion, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found) == CUDA_SUCCESS;
    if (!asked || address == nullptr) address = dlsym(library_, exported);
    if (address == nullptr) missing_ = exported;
    function = reinterpret_cast<Function>(address);
  }

  const char* missing() const { return missing_; }  // null: none

 private:
  void* library_;
  CuGetProcAddress get_;
  const char* missing_ = nullptr;
};

// Asks for the version without the other functions, since an old driver may lack some of them. It needs no cuInit().
absl::Status check_version(void* library, const std::string& path) {
  const auto get = reinterpret_cast<CUresult (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  if (get == nullptr || get(&version) != CUDA_SUCCESS) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is no CUDA driver: it does not tell its version"));
  }
  if (version >= kOldestVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the NVIDIA driver supports CUDA ", version_text(version),
                                                    ", and Gleaner needs a driver for CUDA ",
                                                    version_text(kOldestVersion), " or later; update the driver"));
}

}  // namespace

Driver::Driver(const CudaApi& api) : api_(api), process_(getpid()) {}

absl::StatusOr<std::shared_ptr<const Driver>> Driver::load(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return absl::NotFoundError(absl::StrCat("no CUDA driver: ", why == nullptr ? library : why,
                                            "; install NVIDIA's driver, or run the container with NVIDIA's runtime"));
  }
  GLN_RETURN_IF_ERROR(check_version(handle, library));
  GLN_ASSIGN_OR_RETURN(const CudaApi api, find_functions(handle, library));
  return start(api);
}

std::shared_ptr<const Driver> Driver::find_loaded(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr || !check_version(handle, library).ok()) return nullptr;
  const auto api = find_functions(handle, library);
  return api.ok() ? std::shared_ptr<const Driver>(new Driver(*api)) : nullptr;
}

absl::StatusOr<CudaApi> Driver::find_functions(void* handle, const std::string& library) {
  CudaApi api;
  Symbols symbols(handle);
#define GLN_CUDA_FIND(name, suffix, parameters) symbols.find(#name, #name #suffix, api.name);
  GLN_CUDA_FUNCTIONS(GLN_CUDA_FIND)
#undef GLN_CUDA_FIND
  if (symbols.missing() != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(library, " lacks ", symbols.missing(),
                                                      ", which drivers for CUDA ", version_text(kOldestVersion),
                                                      " and later have; install NVIDIA's driver again"));
  }
  return api;
}

absl::StatusOr<std::shared_ptr<const Driver>> Driver::start(const CudaApi& api) {
  std::shared_ptr<Driver> driver(new Driver(api));
  GLN_RETURN_IF_ERROR(driver->check(api.cuInit(0), "start CUDA"));
  GLN_RETURN_IF_ERROR(driver->check(api.cuDriverGetVersion(&driver->version_), "get the driver's version"));
  return driver;
}

absl::StatusOr<int> Driver::count_devices() const {
  GLN_RETURN_IF_ERROR(check_process());
  int count = 0;
  GLN_RETURN_IF_ERROR(check(api_.cuDeviceGetCount(&count), "count GPUs"));
  return count;
}

absl::Status Driver::check(CUresult result, absl::string_view action) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  if (api_.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    name = "an error that the driver can't name";
  return cuda_error(result, name, action);
}

absl::Status Driver::check_process() const {
  if (getpid() == process_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("process ", getpid(), " was forked from process ", process_,
                   " after Gleaner had started CUDA in it, and CUDA does not work in a forked process; start workers "
                   "with spawn or forkserver, or initialize Gleaner after the fork"));
}

}  // namespace gleaner::device
