// Counts the processes that the kernel has killed because memory ran out (its OOM killer).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gleaner::launcher {

// Returns the count for this process's cgroup and the cgroups below it, from the oom_kill counter in memory.events
// (cgroup v2) or memory.oom_control (v1). If the cgroup has no such counter, returns the count for the whole machine
// from /proc/vmstat. Returns nothing if neither exists. All paths are below `root`.
std::optional<uint64_t> memory_kills(const std::string& root = "");

}  // namespace gleaner::launcher
