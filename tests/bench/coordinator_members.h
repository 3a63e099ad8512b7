// The members' side of coordinator_scale: many sessions on one thread.
#pragma once

#include <cstdint>
#include <string>

namespace gleaner::bench {

inline constexpr char kScaleJob[] = "scale";

struct Load {
  uint32_t sessions = 1000;
  uint32_t tensors = 160;  // of the first change; about what ResNet50 has
  uint32_t changes = 300;  // a tensor each
};

// Joins, declares, and prints as JSON how long plan changes took. 0: all went well.
int run_sessions(const std::string& coordinator, const std::string& roots_file, const Load& load);

}  // namespace gleaner::bench
