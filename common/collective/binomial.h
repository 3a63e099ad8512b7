// binomial() moves along a binomial tree: reduce and gather towards the root, broadcast and scatter away from it, each
// in ceil(log2 n) steps, the fewest possible. The tree numbers ranks from the root on, v = (rank - root) mod n. The
// parent of v is v without its lowest one bit, d, and the subtree of v has the numbers v … v + d - 1 (below n). In a
// reduce or a broadcast each message has the whole vector; in a gather or a scatter it has the blocks of the subtree,
// which are two messages where the ranks of the subtree wrap around.
//
//   n = 6, root 0   step 0 of a gather     step 1           step 2
//                   1 to 0, 3 to 2, 5 to 4   2 (2 3) to 0     4 (4 5) to 0
//
// scatter_ring() broadcasts a large vector: it scatters n chunks of the vector along the tree, and then runs the
// all-gather of a ring. So a rank sends about 2 (n-1)/n of the vector, where the binomial tree has a rank send it
// log2 n times, in ceil(log2 n) + n - 1 steps.
//
// Source: Chan et al., "Collective communication: theory, practice, and experience" (2007), its minimum spanning tree
// algorithms, and its broadcast of long vectors; Thakur et al., "Optimization of collective communication operations in
// MPICH" (2005).
#pragma once

#include <cstdint>

#include "common/collective/schedule.h"

namespace gleaner::collective {

// Requires a reduce, broadcast, gather or scatter.
Schedule binomial(const Collective& collective, OnlyRank only = {});

// Requires a broadcast.
Schedule scatter_ring(const Collective& broadcast, OnlyRank only = {});

}  // namespace gleaner::collective
