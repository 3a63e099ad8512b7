// Functions that read the machine's processor usage from the kernel: the usage of the whole machine, also in a
// container.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "summation-service/service/guard.h"

namespace gleaner::service {

// Parses the text of /proc/stat; `own` stays 0. None: the text has another format.
std::optional<Usage> parse_usage(absl::string_view text, double ticks_per_second);

// Returns the usage so far; none: it can't be read.
std::optional<Usage> read_usage();

}  // namespace gleaner::service
