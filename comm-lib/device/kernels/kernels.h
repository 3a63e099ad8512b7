// Kernels sums tensors in the memory of a device, on a stream, with the bits of common/kernels/kernels.h. For example,
// local ranks whose GPUs see each other's memory sum their gradients before one of them copies the sum to the host:
//
//   auto kernels = Kernels::load(device);
//   kernels->sum(stream, DataType::kFloat16, {rank 0's, rank 1's, ...}, partial_sum, elements)    fp16 to fp32
//   stream.copy_to_host(partial_sum, slot)
//
// On a GPU these are kernels that nvcc has compiled when Gleaner was built (sum.cu). The host device calls
// common/kernels.
//
// Threads: sum() may be called from several threads for different streams. Once warm it allocates nothing, and no call
// but load() waits for the device. All memory must be visible to the stream's device, and valid until the queued work
// has ended; a Kernels, too, must outlive that work. Errors: InvalidArgument as described there, others by
// cuda_errors.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm-lib/device/device.h"
#include "comm-lib/device/kernels/image.h"
#include "comm-lib/device/kernels/sum_arguments.h"
#include "common/base/accumulator.h"
#include "common/base/bytes.h"

namespace gleaner::device {

class Kernels {
 public:
  // Loads the kernels into a GPU. It launches each of them once on no elements, and waits for their end: the driver
  // loads a kernel when it is first launched, and may then wait for other work of the GPU. `device` must outlive the
  // object. Unimplemented: it is a GPU, and this build has no kernels. FailedPrecondition: no part of the image is for
  // this GPU and driver.
  static absl::StatusOr<std::unique_ptr<Kernels>> load(Device* device, ConstBytes image = kernel_image());
  virtual ~Kernels() = default;
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // Queues result[e] = round((((source[0][e] + source[1][e]) + ...) / divisor), as common/kernels/kernels.h defines it.
  // The types are the same, or one is fp16 or bf16 and the other fp32. `result` may be the same memory as one source of
  // the same type; otherwise it must not overlap any source. With one source of fp32 this converts a sum to fp16 or
  // bf16. InvalidArgument: no or more than kMostSources sources, other types, a divisor of int32 that is not 1, an
  // address that is no multiple of the size of an element, a stream of another device.
  absl::Status sum(Stream& stream, DataType from, DataType to, std::span<const Address> sources, Address result,
                   size_t elements, uint32_t divisor);
  // Queues the partial sum, which has the accumulator's type.
  absl::Status sum(Stream& stream, DataType type, std::span<const Address> sources, Address partial_sum,
                   size_t elements) {
    return sum(stream, type, accumulator_of(type), sources, partial_sum, elements, 1);
  }

 protected:
  Kernels() = default;

 private:
  // Queues the kernel kSumKernels[kernel] on at least one element.
  virtual absl::Status launch(Stream& stream, size_t kernel, SumArguments& arguments) = 0;
};

}  // namespace gleaner::device
