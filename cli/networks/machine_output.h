// Writes what `gleaner topology --machine` shows: a machine, and the best way of gradients inside it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace gleaner::cli {

// Returns the text, or with `as_json` an object. `file` has a machine or a NodeProfile (common/machine/json.h); empty:
// this machine, as sysfs shows it. Errors: InvalidArgument names the file and the field that is wrong;
// NotFound: there is no such file, or the machine has no GPU.
absl::StatusOr<std::string> machine_output(const std::string& file, bool as_json);

}  // namespace gleaner::cli
