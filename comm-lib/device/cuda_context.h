// CudaContext holds the primary context of a GPU, which the caller's framework uses, too. Thread safe.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm-lib/device/device.h"
#include "comm-lib/device/driver.h"

namespace gleaner::device {

class CudaContext {
 public:
  static absl::StatusOr<std::shared_ptr<const CudaContext>> retain(std::shared_ptr<const Driver> driver, int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaApi& api() const { return driver_->api(); }
  absl::Status check(CUresult result, absl::string_view action) const { return driver_->check(result, action); }
  CUdevice device() const { return device_; }
  Place place() const { return place_; }

  // Makes the context current in the calling thread as long as the object lives, and then the context that was current
  // before (cuCtxPushCurrent, cuCtxPopCurrent). FailedPrecondition in a process that was forked. The thread may do all
  // meanwhile although another thread captures a CUDA graph in global mode, as torch.cuda.graph() does
  // (cuThreadExchangeStreamCaptureMode).
  class Current {
   public:
    explicit Current(const CudaContext& context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    const absl::Status& status() const { return status_; }

   private:
    const CudaContext& context_;
    const absl::Status status_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // of the thread, to be restored
  };

 private:
  CudaContext(std::shared_ptr<const Driver> driver, CUdevice device, CUcontext context, Place place);
  absl::Status push() const;

  const std::shared_ptr<const Driver> driver_;
  const CUdevice device_;
  const CUcontext context_;
  const Place place_;
};

}  // namespace gleaner::device
