// The commit that a build was made from. The build writes the .cc file (commit.cmake), and compiles only that file
// again when the commit changes.
#pragma once

namespace gleaner::sim {

// As git describe names the commit, with "-dirty" for a working tree that differs from it; "unknown" outside git.
extern const char* const kCommit;

}  // namespace gleaner::sim
