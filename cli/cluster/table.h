// Text for people: tables as kubectl prints them, ages, and what stands for nothing. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gleaner::cli {

// Columns as wide as their widest cell (UTF-8 counts by character), three spaces apart, all to the left; the first row
// is the head. No space at the ends of lines.
std::string table(const std::vector<std::vector<std::string>>& rows);

// "12s", "5m", "3h", "2d"; "-" for a time that is not known.
std::string age(absl::Time since, absl::Time now);

// The text, or "-".
std::string or_dash(absl::string_view text);

}  // namespace gleaner::cli
