// The median and the lower quartile of values. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gleaner {

// Returns the value that has `place` values before it in ascending order. Requires that there are more values.
template <typename T>
T value_at(std::vector<T>& values, size_t place) {
  const auto found = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::ranges::nth_element(values, found);
  return *found;
}

// Returns the median: of an even number of values the greater one of the middle two, so that it is always one of the
// values. 0 without values.
template <typename T>
T upper_median(std::vector<T> values) {
  return values.empty() ? T{} : value_at(values, values.size() / 2);
}

// Returns the value that has a quarter of the values, rounded down, before it in ascending order. It is undisturbed if
// others have disturbed fewer than three quarters of the values. 0 without values.
template <typename T>
T lower_quartile(std::vector<T> values) {
  return values.empty() ? T{} : value_at(values, values.size() / 4);
}

}  // namespace gleaner
