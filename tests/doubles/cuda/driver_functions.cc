// The functions of the driver that Gleaner calls. What each does is in NVIDIA's "CUDA Driver API".
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/doubles/cuda/call.h"

using namespace gleaner::cuda_double;  // NOLINT: the driver's names are global

extern "C" {
#define GLN_CUDA_DECLARE(name, suffix, parameters) GLN_EXPORT CUresult name##suffix parameters;
GLN_CUDA_FUNCTIONS(GLN_CUDA_DECLARE)
#undef GLN_CUDA_DECLARE
}

namespace gleaner::cuda_double {

std::atomic<pid_t>& initialized_process() {
  static std::atomic<pid_t> process = 0;
  return process;
}

std::vector<CUcontext>& current_contexts() {
  thread_local std::vector<CUcontext> contexts;
  return contexts;
}

bool is_unsafe_in_capture(std::string_view function) {
  constexpr std::string_view kUnsafe[] = {"cuEventQuery",   "cuMemAlloc",        "cuMemFreeHost",
                                          "cuMemHostAlloc", "cuMemHostRegister", "cuStreamQuery"};
  return std::ranges::find(kUnsafe, function) != std::end(kUnsafe);
}

CUresult get_current(Machine& m, Context** context) {
  if (current_contexts().empty() || current_contexts().back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *context = m.find(current_contexts().back());
  if (*context == nullptr || (*context)->users == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return (*context)->error;
}

CUresult get_stream(Machine& m, CUstream handle, std::shared_ptr<Stream>* stream) {
  Context* current = nullptr;
  if (const CUresult result = get_current(m, &current); result != CUDA_SUCCESS) return result;
  *stream = handle == nullptr ? current->legacy : m.find(handle);
  if (*stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return (*stream)->context->error;
}

namespace {

struct Named {
  const char* name;
  void* function;
};

// By their plain names, as cuGetProcAddress() takes them.
const Named kFunctions[] = {
#define GLN_CUDA_NAMED(name, suffix, parameters) {#name, reinterpret_cast<void*>(&::name##suffix)},
    GLN_CUDA_FUNCTIONS(GLN_CUDA_NAMED)
#undef GLN_CUDA_NAMED
};

struct ErrorName {
  CUresult error;
  const char* name;
};

#define GLN_NAMED(error) \
  { error, #error }
const ErrorName kErrors[] = {
    GLN_NAMED(CUDA_SUCCESS),
    GLN_NAMED(CUDA_ERROR_INVALID_VALUE),
    GLN_NAMED(CUDA_ERROR_OUT_OF_MEMORY),
    GLN_NAMED(CUDA_ERROR_NOT_INITIALIZED),
    GLN_NAMED(CUDA_ERROR_NO_DEVICE),
    GLN_NAMED(CUDA_ERROR_INVALID_DEVICE),
    GLN_NAMED(CUDA_ERROR_INVALID_IMAGE),
    GLN_NAMED(CUDA_ERROR_INVALID_CONTEXT),
    GLN_NAMED(CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
    GLN_NAMED(CUDA_ERROR_INVALID_HANDLE),
    GLN_NAMED(CUDA_ERROR_NOT_READY),
    GLN_NAMED(CUDA_ERROR_ILLEGAL_ADDRESS),
    GLN_NAMED(CUDA_ERROR_CONTEXT_IS_DESTROYED),
    GLN_NAMED(CUDA_ERROR_NOT_PERMITTED),
    GLN_NAMED(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
};

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

GLN_EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t,
                                        CUdriverProcAddressQueryResult*) {
  return call("cuGetProcAddress", false, [&](Machine& m, auto&) {
    *function = nullptr;
    if (version > m.version) return CUDA_ERROR_NOT_FOUND;
    for (const Named& named : kFunctions) {
      if (std::strcmp(named.name, name) == 0) *function = named.function;
    }
    return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
  });
}

CUresult cuInit(unsigned) {
  return call("cuInit", false, [](Machine& m, auto&) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (m.contexts.empty() || (visible != nullptr && *visible == 0)) return CUDA_ERROR_NO_DEVICE;
    m.is_initialized = true;
    initialized_process() = getpid();
    return CUDA_SUCCESS;
  });
}

CUresult cuDriverGetVersion(int* version) {
  return call("cuDriverGetVersion", false, [&](Machine& m, auto&) {
    *version = m.version;
    return CUDA_SUCCESS;
  });
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  for (const ErrorName& known : kErrors) {
    if (known.error == error) {
      *name = known.name;
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", [&](Machine& m) {
    *count = static_cast<int>(m.contexts.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return call("cuDeviceGet", [&](Machine& m) {
    if (ordinal < 0 || ordinal >= static_cast<int>(m.contexts.size())) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  return call("cuDeviceGetName", [&](Machine&) {
    std::snprintf(name, static_cast<size_t>(bytes), "Double of GPU %d", device);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char* id, int bytes, CUdevice device) {
  return call("cuDeviceGetPCIBusId", [&](Machine&) {
    std::snprintf(id, static_cast<size_t>(bytes), "0000:%02X:00.0", 0x1A + device);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  return call("cuDeviceGetAttribute", [&](Machine&) {
    *value = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call("cuDevicePrimaryCtxRetain", [&](Machine& m) {
    Context& retained = *m.contexts[static_cast<size_t>(device)];
    ++retained.users;
    *context = reinterpret_cast<CUcontext>(&retained);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return call("cuDevicePrimaryCtxRelease", [&](Machine& m) {
    Context& released = *m.contexts[static_cast<size_t>(device)];
    if (released.users == 0) return CUDA_ERROR_INVALID_CONTEXT;
    --released.users;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return call("cuCtxPushCurrent", [&](Machine& m) {
    if (m.find(context) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    current_contexts().push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return call("cuCtxPopCurrent", [&](Machine&) {
    if (current_contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *context = current_contexts().back();
    current_contexts().pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return call("cuCtxGetStreamPriorityRange", [&](Machine& m) {
    Context* current = nullptr;
    *least = 0;
    *greatest = -5;
    return get_current(m, &current);
  });
}

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

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return call("cuThreadExchangeStreamCaptureMode", [&](Machine&) {
    std::swap(*mode, capture_mode());
    return CUDA_SUCCESS;
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

CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned flags, int) {
  return call("cuStreamCreateWithPriority", [&](Machine& m) {
    Context* current = nullptr;
    if (const CUresult result = get_current(m, &current); result != CUDA_SUCCESS) return result;
    *handle = m.add(m.create_stream(current, flags != CU_STREAM_NON_BLOCKING));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  return call("cuStreamDestroy", [&](Machine& m) {
    if (m.find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    m.destroy_stream(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return call("cuStreamQuery", [&](Machine& m) {
    std::shared_ptr<Stream> stream;
    if (const CUresult result = get_stream(m, handle, &stream); result != CUDA_SUCCESS) return result;
    if (stream->done < stream->submitted) return CUDA_ERROR_NOT_READY;
    m.see(stream->clock);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return call("cuStreamIsCapturing", [&](Machine& m) {
    std::shared_ptr<Stream> stream;
    if (const CUresult result = get_stream(m, handle, &stream); result != CUDA_SUCCESS) return result;
    *status = stream->is_capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  return call("cuStreamWaitEvent", [&](Machine& m) {
    std::shared_ptr<Stream> stream;
    if (const CUresult result = get_stream(m, handle, &stream); result != CUDA_SUCCESS) return result;
    const Event* found = m.find(event);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (found->recorded.stream != nullptr) m.submit(stream, {}, {.after = {found->recorded}});
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  return call("cuEventCreate", [&](Machine& m) {
    Context* current = nullptr;
    if (const CUresult result = get_current(m, &current); result != CUDA_SUCCESS) return result;
    *event = m.add(Event{current, {}});
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return call("cuEventDestroy", [&](Machine& m) {
    const Event* found = m.find(event);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const bool is_pending = found->context->error == CUDA_SUCCESS && !found->recorded.is_reached();
    if (is_pending) m.accesses.find("event early: an event that is not done was destroyed");
    m.destroy_event(event);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventQuery(CUevent event) {
  return call("cuEventQuery", [&](Machine& m) {
    const Event* found = m.find(event);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (found->context->error != CUDA_SUCCESS) return found->context->error;
    if (!found->recorded.is_reached()) return CUDA_ERROR_NOT_READY;
    m.see(found->recorded.clock);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent event, CUstream handle) {
  return call("cuEventRecord", [&](Machine& m) {
    std::shared_ptr<Stream> stream;
    if (const CUresult result = get_stream(m, handle, &stream); result != CUDA_SUCCESS) return result;
    Event* found = m.find(event);
    if (found == nullptr || found->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    found->recorded = m.submit(stream, {}, {});
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  return call("cuLaunchHostFunc", [&](Machine& m) {
    std::shared_ptr<Stream> stream;
    if (const CUresult result = get_stream(m, handle, &stream); result != CUDA_SUCCESS) return result;
    // The start of a host function has the effect of a cuEventSynchronize() before it.
    const auto run = [&m, function, data](const Clock& clock) {
      {
        std::unique_lock<std::mutex> lock(m.mutex());
        m.see(clock);
      }
      in_host_function() = true;
      function(data);
      in_host_function() = false;
    };
    m.submit(stream, {}, {.run = run, .host_data = data});
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
