// The kernels of sum.cu as nvcc compiled them: a fatbin with PTX for every GPU that nvcc supports, and machine code for
// some. The driver takes the parts that it needs.
#pragma once

#include "common/base/bytes.h"

namespace gleaner::device {

// Returns the fatbin; empty if CMake found no nvcc (GLEANER_NVCC).
ConstBytes kernel_image();

}  // namespace gleaner::device
