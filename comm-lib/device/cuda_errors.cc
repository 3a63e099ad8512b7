#include "comm-lib/device/cuda_errors.h"

#include "absl/strings/str_cat.h"

namespace gleaner::device {
namespace {

using absl::StatusCode;

constexpr absl::string_view kCapture =
    "a CUDA graph is being captured on this stream; Gleaner's push_pull can't be part of a graph, so call it outside "
    "of "
    "the capture";
constexpr absl::string_view kKernelFailed =
    "a kernel of this process failed, and CUDA can't be used in it any more; run with CUDA_LAUNCH_BLOCKING=1 or "
    "compute-sanitizer to find the kernel, and start the process again";

constexpr absl::string_view kNoCode =
    "Gleaner's kernels are not for this GPU, or nvcc is newer than the driver; update the driver, or build Gleaner "
    "with "
    "the CUDA Toolkit of the driver";

struct Row {
  CUresult result;
  StatusCode code;
  absl::string_view advice;
};

constexpr Row kRows[] = {
    {CUDA_ERROR_INVALID_VALUE, StatusCode::kInvalidArgument,
     "an address or size is not one of the driver's; check that the tensor is still alive"},
    {CUDA_ERROR_OUT_OF_MEMORY, StatusCode::kResourceExhausted,
     "no memory is left; for pinned memory raise the container's memory limit, for device memory use smaller batches"},
    {CUDA_ERROR_NOT_INITIALIZED, StatusCode::kFailedPrecondition,
     "CUDA was initialized before this process was forked; start the process with spawn or forkserver"},
    {CUDA_ERROR_DEINITIALIZED, StatusCode::kUnavailable, "this process is ending; close Gleaner before it ends"},
    {CUDA_ERROR_STUB_LIBRARY, StatusCode::kFailedPrecondition,
     "libcuda.so.1 is the stub of the CUDA Toolkit; remove its folder \"stubs\" from LD_LIBRARY_PATH"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, StatusCode::kUnavailable,
     "another process uses the GPU alone; end it, or set the compute mode with nvidia-smi -c DEFAULT"},
    {CUDA_ERROR_NO_DEVICE, StatusCode::kNotFound,
     "no GPU is visible; see whether CUDA_VISIBLE_DEVICES is empty, and whether the container asks for nvidia.com/gpu"},
    {CUDA_ERROR_INVALID_DEVICE, StatusCode::kInvalidArgument,
     "this process has no GPU of that number; see CUDA_VISIBLE_DEVICES"},
    {CUDA_ERROR_INVALID_IMAGE, StatusCode::kFailedPrecondition, kNoCode},
    {CUDA_ERROR_INVALID_CONTEXT, StatusCode::kFailedPrecondition,
     "no context of this GPU is current in the thread, or the device was reset; don't reset a GPU that Gleaner uses"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, StatusCode::kFailedPrecondition, kNoCode},
    {CUDA_ERROR_ECC_UNCORRECTABLE, StatusCode::kDataLoss,
     "the GPU's memory is faulty; see nvidia-smi -q -d ECC, and replace or reset the GPU"},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, StatusCode::kUnimplemented,
     "the GPUs can't reach each other's memory; see nvidia-smi topo -p2p r"},
    {CUDA_ERROR_INVALID_PTX, StatusCode::kFailedPrecondition, kNoCode},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, StatusCode::kFailedPrecondition, kNoCode},
    {CUDA_ERROR_INVALID_HANDLE, StatusCode::kInvalidArgument,
     "the stream or event was destroyed or belongs to another GPU; keep the stream until the results are there, and "
     "use "
     "one of the tensor's GPU"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, StatusCode::kDataLoss, kKernelFailed},
    {CUDA_ERROR_LAUNCH_TIMEOUT, StatusCode::kDataLoss, kKernelFailed},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, StatusCode::kFailedPrecondition,
     "the device was reset; don't reset a GPU that Gleaner uses"},
    {CUDA_ERROR_ASSERT, StatusCode::kDataLoss, kKernelFailed},
    {CUDA_ERROR_MISALIGNED_ADDRESS, StatusCode::kDataLoss, kKernelFailed},
    {CUDA_ERROR_LAUNCH_FAILED, StatusCode::kDataLoss, kKernelFailed},
    {CUDA_ERROR_NOT_PERMITTED, StatusCode::kFailedPrecondition,
     "the call is not allowed here, as in a host function of a stream"},
    {CUDA_ERROR_SYSTEM_NOT_READY, StatusCode::kFailedPrecondition,
     "the GPUs are not ready; start NVIDIA's fabric manager and see its log"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, StatusCode::kFailedPrecondition,
     "libcuda.so.1 and the kernel's driver are of different versions; reboot, or install libcuda of the kernel's "
     "driver"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, StatusCode::kFailedPrecondition, kCapture},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, StatusCode::kFailedPrecondition, kCapture},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, StatusCode::kFailedPrecondition, kCapture},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, StatusCode::kFailedPrecondition, kCapture},
    {CUDA_ERROR_CAPTURED_EVENT, StatusCode::kFailedPrecondition, kCapture},
};

constexpr Row kOther = {CUDA_SUCCESS, StatusCode::kUnavailable, "see the driver's messages in dmesg and nvidia-smi"};

const Row& row_of(CUresult result) {
  for (const Row& row : kRows) {
    if (row.result == result) return row;
  }
  return kOther;
}

}  // namespace

absl::Status cuda_error(CUresult result, absl::string_view name, absl::string_view action) {
  const Row& row = row_of(result);
  return {row.code, absl::StrCat("can't ", action, ": ", name, " (", static_cast<int>(result), "): ", row.advice)};
}

}  // namespace gleaner::device
