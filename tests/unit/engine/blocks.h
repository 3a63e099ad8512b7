// The memory that sums of the engine's tests need.
#pragma once

#include "common/base/block_size.h"

namespace gleaner::testing {

inline constexpr uint64_t kBlock = block_size(8);  // of a contribution or result of 8 bytes

}  // namespace gleaner::testing
