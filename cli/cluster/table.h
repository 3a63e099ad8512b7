// Formats text for people: tables and ages as kubectl prints them. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gleaner::cli {

// Returns the rows as a table. The first row is the head. Each column is as wide as its widest cell, counted in UTF-8
// characters; columns are left-aligned and three spaces apart. Lines have no trailing spaces.
std::string table(const std::vector<std::vector<std::string>>& rows);

// Returns "12s", "5m", "3h" or "2d"; "-" if `since` is InfinitePast() or the Unix epoch (unknown).
std::string age(absl::Time since, absl::Time now);

// Returns the text, or "-" if it is empty.
std::string or_dash(absl::string_view text);

}  // namespace gleaner::cli
