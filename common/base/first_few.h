// Bounds texts that list many nodes, pods or members.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace gleaner {

constexpr size_t kFew = 10;

// Returns the first `most` items with `separator` between them, and the number of further items: "a, b and 3 more".
template <typename Item>
std::string first_few(const std::vector<Item>& items, size_t most = kFew, absl::string_view separator = ", ") {
  const size_t shown = std::min(most, items.size());
  std::string text = absl::StrJoin(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(shown), separator);
  if (shown < items.size()) absl::StrAppend(&text, " and ", items.size() - shown, " more");
  return text;
}

}  // namespace gleaner
