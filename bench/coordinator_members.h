// The members' side of coordinator_scale: one thread runs the sessions of all members.
#pragma once

#include <cstdint>
#include <string>

namespace gleaner::bench {

inline constexpr char kScaleJob[] = "scale";

struct Load {
  uint32_t sessions = 1000;
  uint32_t tensors = 160;  // tensors that the first plan change adds; about as many as in ResNet50
  uint32_t changes = 300;  // further plan changes, each of which adds one tensor
};

// Joins all sessions, declares tensors, and prints the durations of the plan changes as JSON. Returns 0 on success.
int run_sessions(const std::string& coordinator, const std::string& roots_file, const Load& load);

}  // namespace gleaner::bench
