#include "comm-lib/device/cuda_context.h"

#include <utility>

#include "common/base/status_macros.h"

namespace gleaner::device {

absl::StatusOr<std::shared_ptr<const CudaContext>> CudaContext::retain(std::shared_ptr<const Driver> driver,
                                                                       int ordinal) {
  GLN_RETURN_IF_ERROR(driver->check_process());
  const CudaApi& api = driver->api();
  CUdevice device = 0;
  CUcontext context = nullptr;
  GLN_RETURN_IF_ERROR(driver->check(api.cuDeviceGet(&device, ordinal), "get a GPU"));
  GLN_RETURN_IF_ERROR(driver->check(api.cuDevicePrimaryCtxRetain(&context, device), "get the context of a GPU"));
  return std::shared_ptr<const CudaContext>(new CudaContext(std::move(driver), device, context, Place{ordinal}));
}

CudaContext::CudaContext(std::shared_ptr<const Driver> driver, CUdevice device, CUcontext context, Place place)
    : driver_(std::move(driver)), device_(device), context_(context), place_(place) {}

CudaContext::~CudaContext() {
  if (driver_->check_process().ok()) api().cuDevicePrimaryCtxRelease(device_);
}

absl::Status CudaContext::push() const {
  GLN_RETURN_IF_ERROR(driver_->check_process());
  return check(api().cuCtxPushCurrent(context_), "make the context of a GPU current");
}

CudaContext::Current::Current(const CudaContext& context) : context_(context), status_(context.push()) {
  if (status_.ok()) context_.api().cuThreadExchangeStreamCaptureMode(&mode_);
}

CudaContext::Current::~Current() {
  CUcontext popped = nullptr;
  if (!status_.ok()) return;
  context_.api().cuThreadExchangeStreamCaptureMode(&mode_);
  context_.api().cuCtxPopCurrent(&popped);
}

}  // namespace gleaner::device
