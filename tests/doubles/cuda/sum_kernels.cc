#include "tests/doubles/cuda/sum_kernels.h"

// nvcc includes this header by itself.
#include "tests/doubles/cuda/language/cuda_runtime.h"
// The source of the kernels.
#include "comm-lib/device/kernels/sum.cu"

namespace gleaner::cuda_double {
namespace {

const SumKernel kKernels[] = {
    {"gleaner_sum_float32", gleaner_sum_float32, 4, 4},
    {"gleaner_sum_float64", gleaner_sum_float64, 8, 8},
    {"gleaner_sum_float16", gleaner_sum_float16, 2, 2},
    {"gleaner_sum_bfloat16", gleaner_sum_bfloat16, 2, 2},
    {"gleaner_sum_int32", gleaner_sum_int32, 4, 4},
    {"gleaner_sum_float16_to_float32", gleaner_sum_float16_to_float32, 2, 4},
    {"gleaner_sum_bfloat16_to_float32", gleaner_sum_bfloat16_to_float32, 2, 4},
    {"gleaner_sum_float32_to_float16", gleaner_sum_float32_to_float16, 4, 2},
    {"gleaner_sum_float32_to_bfloat16", gleaner_sum_float32_to_bfloat16, 4, 2},
};

}  // namespace

const SumKernel* find_sum_kernel(const std::string& name) {
  for (const SumKernel& kernel : kKernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

void run(const SumKernel& kernel, const device::SumArguments& arguments, unsigned blocks, unsigned threads) {
  gridDim = {blocks, 1, 1};
  blockDim = {threads, 1, 1};
  for (unsigned block = 0; block < blocks; ++block) {
    for (unsigned thread = 0; thread < threads; ++thread) {
      blockIdx = {block, 0, 0};
      threadIdx = {thread, 0, 0};
      kernel.kernel(arguments);
    }
  }
}

}  // namespace gleaner::cuda_double
