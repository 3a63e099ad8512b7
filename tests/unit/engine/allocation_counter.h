// Counts all calls of operator new in a program that is linked with allocation_counter.cc.
#pragma once

#include <cstdint>

namespace gleaner::testing {

struct Allocations {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

Allocations allocations_so_far();

}  // namespace gleaner::testing
