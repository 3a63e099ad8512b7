// The value of --stages, which several commands have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::cli {

// Parses whole numbers above 0 with commas between them: "3,2,2". Empty: none. InvalidArgument names the flag.
absl::StatusOr<std::vector<uint32_t>> parse_stages(const std::string& text);

}  // namespace gleaner::cli
