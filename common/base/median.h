// The median and the lower quartile of values. Pure.
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

// Returns the value that has a quarter of the values, rounded down, before it in ascending order. It is undisturbed if
// others have disturbed fewer than three quarters of the values. 0 without values.
template <typename T>
T lower_quartile(std::vector<T> values) {
  if (values.empty()) return T{};
  const auto quarter = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::ranges::nth_element(values, quarter);
  return *quarter;
}

}  // namespace gleaner
