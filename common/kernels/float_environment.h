// The default floating-point environment for as long as this lives: round to nearest even, subnormals kept.
//
// Sums run on threads of somebody else's process, who may have asked for flush-to-zero (torch.set_flush_denormal) or
// for another rounding. Belongs to the thread that made it; must end before that thread's environment is changed
// otherwise.
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
