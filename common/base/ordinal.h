// Numbers push_pulls and the like for people, who count from 1.
#pragma once

#include <cstdint>
#include <string>

namespace gleaner {

// Returns "1st", "2nd", "11th", ... for the number of earlier ones: 0, 1, 10, ...
std::string ordinal(uint64_t earlier);

}  // namespace gleaner
