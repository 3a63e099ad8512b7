// Latency is in seconds in values, and in microseconds in files. A latency that comes from microseconds by
// seconds_of_microseconds() is written as the same number of microseconds. Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace gleaner::topology {

inline double seconds_of_microseconds(double microseconds) { return microseconds / 1e6; }

// Returns the microseconds from which seconds_of_microseconds() makes `seconds`; of several, those with the fewest
// digits. Returns the nearest number if there are none.
double microseconds_of_seconds(double seconds);

// Makes the matrix symmetric, whose element i·size + j was measured from i to j: both directions get the greater of
// their values (PLink, Luo's thesis §4.2.1). A direction that was not measured has 0, so the other one counts alone.
void take_greater_direction(std::vector<double>& matrix, size_t size);

}  // namespace gleaner::topology
