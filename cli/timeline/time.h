// Time is the time of an event on the common clock of a trace.
#pragma once

#include <cstdint>
#include <limits>

namespace gleaner::cli {

// Nanoseconds on the clock of the reference (clocks.h); zero is the first event of the trace, on whichever member.
using Time = int64_t;
inline constexpr Time kNever = std::numeric_limits<Time>::min();  // there is no such event in the trace

inline constexpr double kNanosecondsPerSecond = 1e9;
inline double seconds(Time time) { return static_cast<double>(time) / kNanosecondsPerSecond; }

}  // namespace gleaner::cli
