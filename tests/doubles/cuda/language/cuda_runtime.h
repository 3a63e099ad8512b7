// The part of CUDA's language that comm-lib/device/kernels/sum.cu uses, for a C++ compiler of the host. A thread of the
// host plays the threads of the GPU, one after another.
#pragma once

#include <cstdint>

#define __global__
#define __device__
#define __grid_constant__

struct dim3 {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};

inline thread_local dim3 gridDim;
inline thread_local dim3 blockDim;
inline thread_local dim3 blockIdx;
inline thread_local dim3 threadIdx;

inline float __fadd_rn(float a, float b) { return a + b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
