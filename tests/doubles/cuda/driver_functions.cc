// The functions of the driver that Gleaner calls. What each does is in NVIDIA's "CUDA Driver API".
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

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return call("cuThreadExchangeStreamCaptureMode", [&](Machine&) {
    std::swap(*mode, capture_mode());
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
