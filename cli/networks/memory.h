// The memory of this machine, and whether a run fits into it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gleaner::cli {

// Returns the bytes that a text like /proc/meminfo calls available ("MemAvailable:"). None: it does not say.
std::optional<uint64_t> available_memory(absl::string_view meminfo);

// Returns OK if `bytes` are available on this machine, or if it does not say how many are. InvalidArgument: `run`, such
// as "the run", needs more. The error ends with `advice`.
absl::Status check_memory(absl::string_view run, double bytes, absl::string_view advice);

}  // namespace gleaner::cli
