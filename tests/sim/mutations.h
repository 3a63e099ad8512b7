// The protocol broken on purpose, in one place at a time: what the simulator must notice.
#pragma once

#include <cstdint>

namespace gleaner::sim {

// Runs up to `seeds` jobs with each mutation of the cores (GLN_MUTATION), each in a process of its own, since what is
// broken may crash. Prints how each was found; false: some were not.
bool find_mutations(uint64_t seeds);

}  // namespace gleaner::sim
