// The kernels of comm-lib/device/kernels/sum.cu, compiled for the host.
#pragma once

#include <string>

#include "comm-lib/device/kernels/sum_arguments.h"

namespace gleaner::cuda_double {

struct SumKernel {
  const char* name;
  void (*kernel)(device::SumArguments arguments);
  uint64_t from_bytes;  // the size of an element of a source
  uint64_t to_bytes;    // the size of an element of the result
};

// Returns null for an unknown name.
const SumKernel* find_sum_kernel(const std::string& name);

// Runs the threads of all blocks, one after another.
void run(const SumKernel& kernel, const device::SumArguments& arguments, unsigned blocks, unsigned threads);

}  // namespace gleaner::cuda_double
