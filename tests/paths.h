// Where the tests' own files are. Defined in the one source file whose compiled form depends on the checkout's place,
// so that a compiler cache serves every other test from any checkout.
#pragma once

#include <string>

namespace gleaner {

std::string source_dir();  // of the checkout
std::string bin_dir();     // of this build's programs

}  // namespace gleaner
