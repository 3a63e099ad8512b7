// The frame of every exported function of the driver.
#pragma once

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string_view>

#include "tests/doubles/cuda/machine.h"

#define GLN_EXPORT __attribute__((visibility("default")))

namespace gleaner::cuda_double {

// Returns the process that called cuInit(); 0: none has.
std::atomic<pid_t>& initialized_process();

// The contexts that are current in this thread, the last one on top.
std::vector<CUcontext>& current_contexts();

// Returns the context on top, or the error that calls which need one return.
CUresult get_current(Machine& machine, Context** context);
// Returns the stream of a handle, or the error of a call with it. Null is the legacy default stream of the current
// context. The driver wants some context to be current, not that of the stream.
CUresult get_stream(Machine& machine, CUstream handle, std::shared_ptr<Stream>* stream);

// Returns whether the driver may refuse this call, in any thread, while some thread captures a graph in global mode.
bool is_unsafe_in_capture(std::string_view function);

// Calls body(machine, lock) with the mutex, unless the call must fail: in a forked process, in a host function, when a
// test wants an error, or, with `needs_init`, before cuInit().
template <typename Body>
CUresult call(const char* function, bool needs_init, Body body) {
  const pid_t process = initialized_process();
  if (process != 0 && process != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  Machine& m = machine();
  std::unique_lock<std::mutex> lock(m.mutex());
  if (in_host_function()) {
    m.accesses.find(std::string("call inside: a host function called ") + function);
    return CUDA_ERROR_NOT_PERMITTED;
  }
  if (m.is_capturing() && capture_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL && is_unsafe_in_capture(function)) {
    m.accesses.find(std::string("call in capture: a thread in global mode called ") + function);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (const CUresult wanted = m.take_failure(function); wanted != CUDA_SUCCESS) return wanted;
  if (needs_init && !m.is_initialized) return CUDA_ERROR_NOT_INITIALIZED;
  return body(m, lock);
}

// The same for functions that need cuInit() and do not wait.
template <typename Body>
CUresult call(const char* function, Body body) {
  return call(function, true, [&](Machine& m, std::unique_lock<std::mutex>&) { return body(m); });
}

}  // namespace gleaner::cuda_double
