// How many processes the kernel has killed for want of memory (its OOM killer), where it tells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gleaner::launcher {

// Of the cgroup that this process is in, with all below it, by the oom_kill counter of memory.events (cgroup v2) or
// memory.oom_control (v1); of the whole machine, by /proc/vmstat, where the cgroup has none. `root`: of the file
// system.
std::optional<uint64_t> memory_kills(const std::string& root = "");

}  // namespace gleaner::launcher
