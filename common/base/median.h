// The median of values. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gleaner {

// Returns the median: of an even number of values the greater one of the middle two, so that it is always one of the
// values. 0 without values.
template <typename T>
T upper_median(std::vector<T> values) {
  if (values.empty()) return T{};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace gleaner
