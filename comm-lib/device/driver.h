// Driver is the CUDA driver of this machine (libcuda.so.1), loaded at run time, so that one build serves machines with
// and without GPUs. Thread safe. The library stays loaded until the process ends, since the driver has threads in it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "comm-lib/device/cuda_api.h"

namespace gleaner::device {

class Driver {
 public:
  // Loads `library` and calls cuInit(). Functions come from cuGetProcAddress_v2, which gives those of kCodedVersion
  // with the legacy default stream; drivers before CUDA 12.0 lack it, and then dlsym() gives them. Errors: NotFound if
  // there is no library or no visible GPU; FailedPrecondition if the driver is older than kOldestVersion, or CUDA was
  // initialized before a fork of this process; others by cuda_errors.h.
  static absl::StatusOr<std::shared_ptr<const Driver>> load(const std::string& library = "libcuda.so.1");
  // Returns the driver if the process has loaded it already, without a call of cuInit(); null if it has not, or if the
  // driver lacks a function. Calls return CUDA_ERROR_NOT_INITIALIZED until the program starts CUDA.
  static std::shared_ptr<const Driver> find_loaded(const std::string& library = "libcuda.so.1");
  // The same as load() with functions that the caller has found or changed.
  static absl::StatusOr<std::shared_ptr<const Driver>> start(const CudaApi& api);

  const CudaApi& api() const { return api_; }
  // Returns the newest version of CUDA that the driver supports: 12040 is 12.4.
  int version() const { return version_; }
  // Returns the number of GPUs that this process sees, by CUDA_VISIBLE_DEVICES.
  absl::StatusOr<int> count_devices() const;

  // Returns OK or the error of a call. `action` completes "can't ...". Allocates only if there is an error.
  absl::Status check(CUresult result, absl::string_view action) const;
  // FailedPrecondition in a process that was forked from the one that loaded the driver: CUDA does not work there.
  absl::Status check_process() const;

 private:
  explicit Driver(const CudaApi& api);
  static absl::StatusOr<CudaApi> find_functions(void* handle, const std::string& library);
  const CudaApi api_;
  const pid_t process_;
  int version_ = 0;
};

}  // namespace gleaner::device
