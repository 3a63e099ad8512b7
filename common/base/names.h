// The rules for names that users give: of jobs, tensors and machines. Names reach metrics, traces and JSON, so a name
// is UTF-8 without control characters. Each program and the coordinator check a name where it enters. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gleaner {

inline constexpr size_t kMaxNameBytes = 512;  // limit for names without a limit of their own

// Returns `text` in quotes: its first 64 bytes, with control characters and bytes that are not UTF-8 as \xNN.
std::string quote(absl::string_view text);

// Checks that `name` has 1 to `max_bytes` bytes of UTF-8 without control characters (U+0000 to U+001F, U+007F to
// U+009F). InvalidArgument says which rule the name breaks; its message begins with `what`, such as "the job's name".
absl::Status check_name(absl::string_view what, absl::string_view name, size_t max_bytes = kMaxNameBytes);

}  // namespace gleaner
