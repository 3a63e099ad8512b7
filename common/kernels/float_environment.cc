#include "common/kernels/float_environment.h"

#include <xmmintrin.h>

namespace gleaner::kernels {
namespace {

// All exceptions masked, round to nearest even, no flush-to-zero, no denormals-are-zero.
constexpr uint32_t kDefault = 0x1F80;

}  // namespace

ScopedFloatEnvironment::ScopedFloatEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(kDefault); }

ScopedFloatEnvironment::~ScopedFloatEnvironment() { _mm_setcsr(saved_); }

}  // namespace gleaner::kernels
