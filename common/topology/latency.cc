#include "common/topology/latency.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace gleaner::topology {
namespace {

// Returns the number of characters of the shortest text that is read back as `value`.
long digits(double value) {
  char text[400];
  return std::to_chars(std::begin(text), std::end(text), value).ptr - text;
}

}  // namespace

double microseconds_of_seconds(double seconds) {
  const double nearest = seconds * 1e6;
  double best = nearest, candidate = nearest;
  long fewest = -1;  // none yet
  for (int back = 0; back < 2; ++back) candidate = std::nextafter(candidate, -INFINITY);
  for (int i = 0; i < 5; ++i, candidate = std::nextafter(candidate, INFINITY)) {
    if (candidate < 0 || seconds_of_microseconds(candidate) != seconds) continue;
    if (fewest >= 0 && digits(candidate) >= fewest) continue;
    best = candidate;
    fewest = digits(candidate);
  }
  return best;
}

void take_greater_direction(std::vector<double>& matrix, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < i; ++j) {
      double &there = matrix[i * size + j], &back = matrix[j * size + i];
      there = back = std::max(there, back);
    }
  }
}

}  // namespace gleaner::topology
