// The commands of `gleaner probe`, which measure the network between hosts.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/networks/commands.h"
#include "common/flags/command.h"

namespace gleaner::cli {

// The path to one peer, as `gleaner probe peers` measures it and writes it on a line.
struct ProbedPath {
  double latency_us = 0;       // one way
  double bits_per_second = 0;  // of the slower direction
  double overhead_us = 0;      // of a host for a message, the mean of both
};

// The line is a JSON object without line breaks. to_line() ends with a newline.
std::string to_line(const std::string& peer, const ProbedPath& path);
absl::StatusOr<ProbedPath> parse_line(absl::string_view line);

// Adds the flag with which `gleaner probe pairs` tells a command to write `marker` as its first line.
void add_marker_flag(flags::Command& command, std::string& marker);
absl::Status print_marker(const std::string& marker);

void add_probe_pairs(flags::Command& probe, Context& context);
void add_probe_serve(flags::Command& probe, Context& context);
void add_probe_peers(flags::Command& probe, Context& context);

}  // namespace gleaner::cli
