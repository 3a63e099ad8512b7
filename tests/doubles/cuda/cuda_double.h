// This is a double of NVIDIA's CUDA driver, for machines without a GPU. No GPU and no code of NVIDIA's is in it. It is
// built as libcuda.so.1 in the folder of the build, beside the tests, and is not installed.
//
// The double shows: work on streams is asynchronous (each stream is a thread with a queue), in an order between streams
// that a seed changes; the legacy default stream, which waits for blocking streams and they for it; contexts that are
// current per thread, and the errors of calls with the wrong one; errors of calls and of kernels, on demand; and the
// findings below. Device memory is host memory that the program can't touch (PROT_NONE); only copies of the double do.
//
// Kernels are emulated. The double takes any fatbin, and finds the kernels of comm-lib/device/kernels/sum.cu by their
// names: their source, compiled for the host, runs on the stream's thread. So it shows their loops, arguments, names
// and order, but neither nvcc's code nor the GPU's arithmetic; conversions of fp16 are those of common/kernels.
//
// The double does not show: speed; how the real driver overlaps copies or serializes host functions; what it does with
// handles that were destroyed (here INVALID_HANDLE, there perhaps a crash) or with copies from pageable memory;
// other kernels, graphs, peer access, memory pools, per-thread default streams; limits of memory.
//
// Findings are mistakes that no return value of the driver tells:
//   unordered      two operations touch the same bytes, one of them writes, and neither waits for the other, by stream,
//                  event, or the host's having seen the end of the first. It does not depend on which ran first.
//   overwritten    a copy to the host overwrites the result of another before the host could see that one
//   source changed the host wrote to the source of a copy before the copy was done
//   freed early    memory was freed before the host saw the end of its use
//   event early    an event was destroyed before its stream reached it. The driver allows it; Gleaner must not do it,
//                  since it tells the event's handle to callers that wait for it later.
//   unloaded early a module was unloaded before its kernels had ended
//   call inside    a host function called the driver
//   call in capture  a thread called the driver in a way that breaks the graph that another thread captures
// The host's own reads are not seen: to show a read that is too early, the destination of a copy is filled with
// kPoison until the copy is done. All threads of the host count as one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm-lib/device/cuda_api.h"

namespace gleaner::cuda_double {
inline constexpr unsigned char kPoison = 0xA5;  // in memory that no copy has written yet
}  // namespace gleaner::cuda_double

extern "C" {

// Forgets everything but memory, and makes GPUs that nobody uses yet. All work must have ended. `seed` chooses pauses
// before operations, 0 none; `version` is that of cuDriverGetVersion(), such as 12040.
void gln_double_reset(uint64_t seed, int devices, int version);
// Makes the next call of a function ("cuEventQuery", without suffix) return `result` and do nothing else.
void gln_double_fail_next(const char* function, int result);
// Keeps a stream from beginning operations, or lets it go on.
void gln_double_hold(gleaner::device::CUstream stream, int is_held);
// Queues a kernel that fails: from then on nothing on its GPU is carried out, no host function is called, and all calls
// for that GPU return `result`.
void gln_double_fail_kernel(gleaner::device::CUstream stream, int result);
// Begins or ends the capture of a graph on a stream. The double only tells of it, and captures nothing.
void gln_double_capture(gleaner::device::CUstream stream, int is_capturing);
// Returns the number of allocations of device memory in this process, including those of others that it has open.
int gln_double_count_device_memory();
// Writes the findings since the last call, one in a line, and returns their number.
int gln_double_take_findings(char* text, size_t bytes);

}  // extern "C"
