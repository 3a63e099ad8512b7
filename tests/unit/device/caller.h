// Plays the program that uses Gleaner on GPUs: it has tensors in device memory, and streams of its own. All of it goes
// through the functions of a CUDA driver, the double's (tests/doubles/cuda) or a real one's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm-lib/device/completions.h"
#include "comm-lib/device/cuda_device.h"
#include "comm-lib/device/device.h"

namespace gleaner::device {

// The functions of cuda_double.h.
struct Double {
  Double();
  void (*reset)(uint64_t seed, int devices, int version);
  void (*fail_next)(const char* function, int result);
  void (*hold)(CUstream stream, int is_held);
  void (*fail_kernel)(CUstream stream, int result);
  void (*capture)(CUstream stream, int is_capturing);
  int (*count_device_memory)();
  std::string take_findings() const;

 private:
  int (*take_findings_)(char* text, size_t bytes);
};

class Caller {
 public:
  // Makes the primary context of a GPU current in this thread.
  Caller(std::shared_ptr<const Driver> driver, int ordinal, const std::string& library = CUDA_DOUBLE);
  // Waits for its streams, and frees and destroys what it has made. The context that was current is so again.
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  CUcontext context() const { return context_; }
  CUcontext current_context() const;
  void make_current();

  CUdeviceptr allocate(size_t bytes);
  CUdeviceptr allocate_managed(size_t bytes);
  // Returns a stream that synchronizes with the legacy default stream, as cudaStreamCreate() does.
  CUstream create_stream();
  void destroy(CUstream stream);
  // Queues a write of `value` to all bytes, in place of a kernel.
  void write(CUstream stream, CUdeviceptr to, size_t bytes, int value);
  // The same, of these bytes.
  void write(CUstream stream, CUdeviceptr to, ConstBytes bytes);
  // Queues a read, in place of a kernel, and returns memory in which the bytes are after synchronize().
  ConstBytes read(CUstream stream, CUdeviceptr from, size_t bytes);
  void synchronize(CUstream stream);
  // The same for a GPU that has failed or fails.
  void synchronize_failed(CUstream stream);

 private:
  MutableBytes pin(size_t bytes);

  const std::shared_ptr<const Driver> driver_;
  CUcontext context_ = nullptr;
  CUdevice device_ = 0;
  std::vector<CUstream> streams_;
  std::vector<CUdeviceptr> memory_;
  std::vector<void*> pinned_;

  CUresult (*get_current_)(CUcontext*);
  CUresult (*set_current_)(CUcontext);
  CUresult (*allocate_)(CUdeviceptr*, size_t);
  CUresult (*allocate_managed_)(CUdeviceptr*, size_t, unsigned);
  CUresult (*free_)(CUdeviceptr);
  CUresult (*synchronize_)(CUstream);
};

inline CallerStream number_of(CUstream stream) { return CallerStream{reinterpret_cast<uintptr_t>(stream)}; }

// Waits until `count` more tags have arrived, a minute at most, and returns them.
std::vector<uint64_t> await(Completions& completions, size_t count);

// Returns whether all bytes have this value.
bool all_are(ConstBytes bytes, int value);

}  // namespace gleaner::device
