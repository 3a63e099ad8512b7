// Functions that format text for people: tables of text, and numbers of things.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gleaner {

// Returns a line for each row, with every column as wide as its widest cell and two spaces between columns.
// `alignment` has a letter for each column, 'l' for left or 'r' for right; its last letter counts for all columns after
// it. A last cell that is aligned to the left gets no spaces after it.
std::string align(const std::vector<std::vector<std::string>>& rows, absl::string_view alignment);

// Returns the number and the noun: "1 worker", "3 workers". Without `several` the plural is the noun with an s.
std::string counted(uint64_t count, absl::string_view noun, absl::string_view several = {});

}  // namespace gleaner
