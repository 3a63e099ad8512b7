// Folders of the checkout and of the build. Only paths.cc contains absolute paths, so that ccache can share the objects
// of all other sources between checkouts.
#pragma once

#include <string>

namespace gleaner {

std::string source_dir();  // root folder of the checkout
std::string bin_dir();     // folder of this build's programs

}  // namespace gleaner
