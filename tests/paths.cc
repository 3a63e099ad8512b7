#include "tests/paths.h"

namespace gleaner {

std::string source_dir() { return GLEANER_SOURCE_DIR; }
std::string bin_dir() { return GLEANER_BIN_DIR; }

}  // namespace gleaner
