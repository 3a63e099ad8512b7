// The driver's functions about memory: allocations, memory shared between processes, copies and pointers. Each does
// what NVIDIA's "CUDA Driver API" says of it.
#include <fcntl.h>

#include <cstring>
#include <string>
#include <string_view>

#include "tests/doubles/cuda/call.h"

using namespace gleaner::cuda_double;  // NOLINT: the driver's names are global

extern "C" {
#define GLN_CUDA_DECLARE(name, suffix, parameters) GLN_EXPORT CUresult name##suffix parameters;
GLN_CUDA_FUNCTIONS(GLN_CUDA_DECLARE)
#undef GLN_CUDA_DECLARE
}

namespace gleaner::cuda_double {
namespace {

size_t hash_of(const void* data, size_t bytes) {
  return std::hash<std::string_view>()({static_cast<const char*>(data), bytes});
}

Range range_of(const void* host, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(host);
  return {begin, begin + bytes};
}

// How the double fills in a CUipcMemHandle: a file of the process that has allocated the memory.
struct SharedFile {
  pid_t process = 0;
  int file = -1;
  size_t bytes = 0;
};

CUresult find_device_memory(const Machine& m, CUdeviceptr address, size_t bytes, std::shared_ptr<Allocation>* found) {
  *found = m.memory.find(address, bytes);
  const bool is_on_gpu = *found != nullptr && ((*found)->kind == Kind::kDevice || (*found)->kind == Kind::kManaged);
  return is_on_gpu ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace gleaner::cuda_double

extern "C" {

CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  return call("cuMemHostAlloc", [&](Machine& m) {
    Context* current = nullptr;
    if (const CUresult result = get_current(m, &current); result != CUDA_SUCCESS) return result;
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    *address = m.memory.allocate(Kind::kPinned, current->ordinal, bytes);
    return *address == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  });
}

CUresult cuMemFreeHost(void* address) {
  return call("cuMemFreeHost", [&](Machine& m) {
    const auto found = m.memory.find(reinterpret_cast<uint64_t>(address), 1);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (m.accesses.touch(found->range())) m.accesses.find("freed early: pinned memory");
    return m.memory.free(Kind::kPinned, found->range().begin) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemHostRegister_v2(void* address, size_t bytes, unsigned) {
  return call("cuMemHostRegister", [&](Machine& m) {
    Context* current = nullptr;
    if (const CUresult result = get_current(m, &current); result != CUDA_SUCCESS) return result;
    if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    return m.memory.add(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  });
}

CUresult cuMemHostUnregister(void* address) {
  return call("cuMemHostUnregister", [&](Machine& m) {
    const auto found = m.memory.find(reinterpret_cast<uint64_t>(address), 1);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (m.accesses.touch(found->range())) m.accesses.find("freed early: registered memory");
    return m.memory.free(Kind::kRegistered, found->range().begin) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  return call("cuIpcGetMemHandle", [&](Machine& m) {
    std::shared_ptr<Allocation> found;
    if (const CUresult result = find_device_memory(m, address, 1, &found); result != CUDA_SUCCESS) return result;
    const SharedFile shared{getpid(), found->file, found->bytes};
    *handle = {};
    std::memcpy(handle->reserved, &shared, sizeof(shared));
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned) {
  return call("cuIpcOpenMemHandle", [&](Machine& m) {
    Context* current = nullptr;
    if (const CUresult result = get_current(m, &current); result != CUDA_SUCCESS) return result;
    SharedFile shared;
    std::memcpy(static_cast<void*>(&shared), handle.reserved, sizeof(shared));
    const std::string path = "/proc/" + std::to_string(shared.process) + "/fd/" + std::to_string(shared.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return CUDA_ERROR_INVALID_HANDLE;
    *address = reinterpret_cast<CUdeviceptr>(m.memory.open(current->ordinal, shared.bytes, file));
    return *address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  return call("cuIpcCloseMemHandle", [&](Machine& m) {
    const auto found = m.memory.find(address, 1);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (m.accesses.touch(found->range())) m.accesses.find("freed early: shared device memory");
    return m.memory.free(Kind::kDevice, address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle) {
  return call("cuMemcpyDtoDAsync", [&](Machine& m) {
    std::shared_ptr<Stream> stream;
    std::shared_ptr<Allocation> source, target;
    if (const CUresult result = get_stream(m, handle, &stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = find_device_memory(m, from, bytes, &source); result != CUDA_SUCCESS) return result;
    if (const CUresult result = find_device_memory(m, to, bytes, &target); result != CUDA_SUCCESS) return result;
    m.submit(stream, {{{from, from + bytes}, false, false}, {{to, to + bytes}, true, false}},
             {.run = [=](const Clock&) {
               std::memmove(target->touchable + (to - target->range().begin),
                            source->touchable + (from - source->range().begin), bytes);
             }});
    return CUDA_SUCCESS;
  });
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream handle) {
  return call("cuMemcpyDtoHAsync", [&](Machine& m) {
    std::shared_ptr<Stream> stream;
    std::shared_ptr<Allocation> source;
    if (const CUresult result = get_stream(m, handle, &stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = find_device_memory(m, from, bytes, &source); result != CUDA_SUCCESS) return result;
    if (!m.accesses.touch(range_of(to, bytes))) std::memset(to, kPoison, bytes);
    m.submit(stream, {{{from, from + bytes}, false, false}, {range_of(to, bytes), true, true}},
             {.run = [=, host = m.memory.find(reinterpret_cast<uint64_t>(to), bytes)](const Clock&) {
               std::memcpy(to, source->touchable + (from - source->range().begin), bytes);
             }});
    return CUDA_SUCCESS;
  });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream handle) {
  return call("cuMemcpyHtoDAsync", [&](Machine& m) {
    std::shared_ptr<Stream> stream;
    std::shared_ptr<Allocation> target;
    if (const CUresult result = get_stream(m, handle, &stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = find_device_memory(m, to, bytes, &target); result != CUDA_SUCCESS) return result;
    // An operation that is queued may still write the source.
    const bool is_settled = !m.accesses.touch(range_of(from, bytes));
    const size_t hash = is_settled ? hash_of(from, bytes) : 0;
    m.submit(stream, {{range_of(from, bytes), false, true}, {{to, to + bytes}, true, false}},
             {.run = [=, &m, host = m.memory.find(reinterpret_cast<uint64_t>(from), bytes)](const Clock&) {
               std::memcpy(target->touchable + (to - target->range().begin), from, bytes);
               if (!is_settled || hash == hash_of(from, bytes)) return;
               std::unique_lock<std::mutex> lock(m.mutex());
               m.accesses.find("source changed: the host wrote to the source of a copy to the device");
             }});
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return call("cuPointerGetAttribute", [&](Machine& m) {
    const auto found = m.memory.find(address, 1);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool is_host = found->kind == Kind::kPinned || found->kind == Kind::kRegistered;
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
      *static_cast<unsigned*>(value) = is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    } else if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED) {
      *static_cast<bool*>(value) = found->kind == Kind::kManaged;
    } else {
      *static_cast<int*>(value) = found->ordinal;
    }
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
