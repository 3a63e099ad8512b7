// ScopedFloatEnvironment sets the default floating-point environment as long as it lives: rounding is to nearest even,
// and subnormals are kept.
//
// Sums run on threads of the user's process, which may have set flush-to-zero (torch.set_flush_denormal) or another
// rounding. The object belongs to the thread that made it, and must be destroyed before other code changes that
// thread's environment.
#pragma once

#include <cstdint>

namespace gleaner::kernels {

class ScopedFloatEnvironment {
 public:
  ScopedFloatEnvironment();
  ~ScopedFloatEnvironment();
  ScopedFloatEnvironment(const ScopedFloatEnvironment&) = delete;
  ScopedFloatEnvironment& operator=(const ScopedFloatEnvironment&) = delete;

 private:
  uint32_t saved_;  // the MXCSR register
};

}  // namespace gleaner::kernels
