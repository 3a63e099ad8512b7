// idle_api() returns functions of a driver that do nothing and succeed, for tests that count allocations: the double
// itself allocates. Host functions are called at once.
#pragma once

#include <cstdlib>

#include "comm-lib/device/cuda_api.h"

namespace gleaner::device {

template <typename... Parameters>
CUresult succeed(Parameters...) {
  return CUDA_SUCCESS;
}

template <typename... Parameters>
void make_succeed(CUresult (*&function)(Parameters...)) {
  function = &succeed<Parameters...>;
}

inline CudaApi idle_api() {
  CudaApi api;
#define GLN_SUCCEED(name, suffix, parameters) make_succeed(api.name);
  GLN_CUDA_FUNCTIONS(GLN_SUCCEED)
#undef GLN_SUCCEED
  api.cuLaunchHostFunc = [](CUstream, CUhostFn function, void* data) {
    function(data);
    return CUDA_SUCCESS;
  };
  api.cuMemHostAlloc = [](void** memory, size_t bytes, unsigned) {
    constexpr size_t kPageBytes = 4096;
    *memory = std::aligned_alloc(kPageBytes, (bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
    return CUDA_SUCCESS;
  };
  api.cuMemFreeHost = [](void* memory) {
    std::free(memory);
    return CUDA_SUCCESS;
  };
  return api;
}

}  // namespace gleaner::device
