// Functions of the driver that Gleaner does not call, but the programs that use it do, by their framework.
#include "tests/doubles/cuda/call.h"

using namespace gleaner::cuda_double;  // NOLINT: the driver's names are global

namespace {

CUresult allocate(Kind kind, CUdeviceptr* address, size_t bytes, Machine& m) {
  Context* current = nullptr;
  if (const CUresult result = get_current(m, &current); result != CUDA_SUCCESS) return result;
  *address = reinterpret_cast<CUdeviceptr>(m.memory.allocate(kind, current->ordinal, bytes));
  return *address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

}  // namespace

extern "C" {

GLN_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  return call("cuCtxGetCurrent", [&](Machine&) {
    *context = current_contexts().empty() ? nullptr : current_contexts().back();
    return CUDA_SUCCESS;
  });
}

GLN_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  return call("cuCtxSetCurrent", [&](Machine&) {
    if (!current_contexts().empty()) current_contexts().pop_back();
    current_contexts().push_back(context);
    return CUDA_SUCCESS;
  });
}

GLN_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return call("cuMemAlloc", [&](Machine& m) { return allocate(Kind::kDevice, address, bytes, m); });
}

GLN_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned) {
  return call("cuMemAllocManaged", [&](Machine& m) { return allocate(Kind::kManaged, address, bytes, m); });
}

GLN_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  return call("cuMemFree", [&](Machine& m) {
    const auto found = m.memory.find(address, 1);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (m.accesses.touch(found->range())) m.accesses.find("freed early: device memory");
    return m.memory.free(found->kind, address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

GLN_EXPORT CUresult cuStreamSynchronize(CUstream handle) {
  return call("cuStreamSynchronize", true, [&](Machine& m, std::unique_lock<std::mutex>& lock) {
    std::shared_ptr<Stream> stream;
    if (const CUresult result = get_stream(m, handle, &stream); result != CUDA_SUCCESS) return result;
    m.wait(lock, {stream, stream->submitted, stream->clock});
    return stream->context->error;
  });
}

}  // extern "C"
