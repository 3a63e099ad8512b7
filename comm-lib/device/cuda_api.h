// Declares the part of the CUDA driver API that this folder calls, so that a build needs no CUDA Toolkit. Names, values
// and parameters are NVIDIA's ("CUDA Driver API", docs.nvidia.com/cuda/cuda-driver-api); the namespace keeps them apart
// from NVIDIA's own header. NVIDIA keeps the values and the exported functions: a changed function gets a new suffix.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gleaner::device {

using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;  // null is the legacy default stream of the current context
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUhostFn = void (*)(void* data);

// Only the values that cuda_errors.cc explains or that a caller acts on.
enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_SYSTEM_NOT_READY = 802,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_CAPTURED_EVENT = 907,
};

enum CUdevice_attribute : int { CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101 };
enum CUpointer_attribute : int {
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
};
enum CUmemorytype : unsigned { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2 };
enum CUstreamCaptureMode : int { CU_STREAM_CAPTURE_MODE_GLOBAL = 0, CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum CUstreamCaptureStatus : int { CU_STREAM_CAPTURE_STATUS_NONE = 0, CU_STREAM_CAPTURE_STATUS_ACTIVE = 1 };
struct CUipcMemHandle {
  char reserved[64];
};
enum CUdriverProcAddressQueryResult : int { CU_GET_PROC_ADDRESS_SUCCESS = 0 };

inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;
inline constexpr unsigned CU_MEMHOSTALLOC_PORTABLE = 1;
inline constexpr unsigned CU_MEMHOSTREGISTER_PORTABLE = 1;
inline constexpr unsigned CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1;
inline constexpr uint64_t CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1;

// The version of the API by which cuGetProcAddress chooses functions, and the oldest one that has them all under the
// names below. A version is 1000 * major + 10 * minor, as cuDriverGetVersion() gives it.
inline constexpr int kCodedVersion = 12000;
inline constexpr int kOldestVersion = 11000;

// Each function, as F(name, suffix of the exported symbol, parameters). The first ones load and launch kernels.
#define GLN_CUDA_KERNEL_FUNCTIONS(F)                                                                   \
  F(cuModuleLoadData, , (CUmodule * module, const void* image))                                        \
  F(cuModuleUnload, , (CUmodule module))                                                               \
  F(cuModuleGetFunction, , (CUfunction * function, CUmodule module, const char* name))                 \
  F(cuLaunchKernel, ,                                                                                  \
    (CUfunction function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x, \
     unsigned threads_y, unsigned threads_z, unsigned shared_bytes, CUstream stream, void** parameters, void** extra))

#define GLN_CUDA_FUNCTIONS(F)                                                                   \
  GLN_CUDA_KERNEL_FUNCTIONS(F)                                                                  \
  F(cuInit, , (unsigned flags))                                                                 \
  F(cuDriverGetVersion, , (int* version))                                                       \
  F(cuGetErrorName, , (CUresult error, const char** name))                                      \
  F(cuDeviceGetCount, , (int* count))                                                           \
  F(cuDeviceGet, , (CUdevice * device, int ordinal))                                            \
  F(cuDeviceGetName, , (char* name, int bytes, CUdevice device))                                \
  F(cuDeviceGetPCIBusId, , (char* id, int bytes, CUdevice device))                              \
  F(cuDeviceGetAttribute, , (int* value, CUdevice_attribute attribute, CUdevice device))        \
  F(cuDevicePrimaryCtxRetain, , (CUcontext * context, CUdevice device))                         \
  F(cuDevicePrimaryCtxRelease, _v2, (CUdevice device))                                          \
  F(cuCtxPushCurrent, _v2, (CUcontext context))                                                 \
  F(cuCtxPopCurrent, _v2, (CUcontext * context))                                                \
  F(cuThreadExchangeStreamCaptureMode, , (CUstreamCaptureMode * mode))                          \
  F(cuCtxGetStreamPriorityRange, , (int* least, int* greatest))                                 \
  F(cuMemHostAlloc, , (void** address, size_t bytes, unsigned flags))                           \
  F(cuMemFreeHost, , (void* address))                                                           \
  F(cuMemHostRegister, _v2, (void* address, size_t bytes, unsigned flags))                      \
  F(cuMemHostUnregister, , (void* address))                                                     \
  F(cuMemAlloc, _v2, (CUdeviceptr * address, size_t bytes))                                     \
  F(cuMemFree, _v2, (CUdeviceptr address))                                                      \
  F(cuIpcGetMemHandle, , (CUipcMemHandle * handle, CUdeviceptr address))                        \
  F(cuIpcOpenMemHandle, _v2, (CUdeviceptr * address, CUipcMemHandle handle, unsigned flags))    \
  F(cuIpcCloseMemHandle, , (CUdeviceptr address))                                               \
  F(cuMemcpyDtoDAsync, _v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))  \
  F(cuMemcpyDtoHAsync, _v2, (void* to, CUdeviceptr from, size_t bytes, CUstream stream))        \
  F(cuMemcpyHtoDAsync, _v2, (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))  \
  F(cuPointerGetAttribute, , (void* value, CUpointer_attribute attribute, CUdeviceptr address)) \
  F(cuStreamCreateWithPriority, , (CUstream * stream, unsigned flags, int priority))            \
  F(cuStreamDestroy, _v2, (CUstream stream))                                                    \
  F(cuStreamQuery, , (CUstream stream))                                                         \
  F(cuStreamIsCapturing, , (CUstream stream, CUstreamCaptureStatus * status))                   \
  F(cuStreamWaitEvent, , (CUstream stream, CUevent event, unsigned flags))                      \
  F(cuEventCreate, , (CUevent * event, unsigned flags))                                         \
  F(cuEventDestroy, _v2, (CUevent event))                                                       \
  F(cuEventQuery, , (CUevent event))                                                            \
  F(cuEventRecord, , (CUevent event, CUstream stream))                                          \
  F(cuLaunchHostFunc, , (CUstream stream, CUhostFn function, void* data))

// The functions of a loaded driver.
struct CudaApi {
#define GLN_CUDA_MEMBER(name, suffix, parameters) CUresult(*name) parameters = nullptr;
  GLN_CUDA_FUNCTIONS(GLN_CUDA_MEMBER)
#undef GLN_CUDA_MEMBER
};

using CuGetProcAddress = CUresult (*)(const char* name, void** function, int version, uint64_t flags,
                                      CUdriverProcAddressQueryResult* found);

}  // namespace gleaner::device
