// What the machine's processors have done so far, as the kernel counts it. In a container, too, that is the whole
// machine.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "summation-service/service/guard.h"

namespace gleaner::service {

// Of the text of /proc/stat; `own` stays 0. None: it is something else.
std::optional<Usage> parse_usage(absl::string_view text, double ticks_per_second);

std::optional<Usage> read_usage();

}  // namespace gleaner::service
