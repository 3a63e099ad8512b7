// Mutation tests of the simulator. A mutation breaks the protocol in one place on purpose, and the simulator must
// detect it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gleaner::sim {

// Runs up to `seeds` jobs with each mutation of the cores (GLN_MUTATION). Each mutation runs in a separate process,
// since it may cause a crash, and `jobs` of them at the same time. Prints how each mutation was detected. Returns false
// if a mutation was not detected.
bool find_mutations(uint64_t seeds, size_t jobs);

}  // namespace gleaner::sim
