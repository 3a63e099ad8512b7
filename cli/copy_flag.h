// The flag --copy of `gleaner plan`: the bandwidth of copies between GPU and CPU memory.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/flags/command.h"
#include "common/plan/copies.h"

namespace gleaner::cli {

void add_copy_flag(flags::Command& command, std::string& text);

// Returns the flag's value in bytes per second; nothing if it was not given. The value is a number of bytes per second,
// as "20GB/s", or of bits per second, as "160Gbit". InvalidArgument names the flag.
absl::StatusOr<std::optional<double>> parse_copy_bandwidth(const std::string& text);

// Returns the stage as a JSON object, without a newline.
std::string copy_json(const plan::CopyStage& stage);

}  // namespace gleaner::cli
