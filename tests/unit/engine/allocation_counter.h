// Counts every operator new of the process it is linked into.
#pragma once

#include <cstdint>

namespace gleaner::testing {

struct Allocations {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

Allocations allocations_so_far();

}  // namespace gleaner::testing
