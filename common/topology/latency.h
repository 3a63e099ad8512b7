// Latency is in seconds in values, and in microseconds in files. A latency that comes from microseconds by
// seconds_of_microseconds() is written as the same number of microseconds. Pure.
#pragma once

namespace gleaner::topology {

inline double seconds_of_microseconds(double microseconds) { return microseconds / 1e6; }

// Returns the microseconds from which seconds_of_microseconds() makes `seconds`; of several, those with the fewest
// digits. Returns the nearest number if there are none.
double microseconds_of_seconds(double seconds);

}  // namespace gleaner::topology
