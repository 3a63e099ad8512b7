// The links of networks in tests of strategies.
#pragma once

namespace gleaner::strategy {

inline constexpr double kBits = 10e9;     // per second
inline constexpr double kLatency = 5e-6;  // seconds

}  // namespace gleaner::strategy
