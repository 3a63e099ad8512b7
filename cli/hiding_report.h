// The flags --compute-time and --prices of `gleaner plan`, and their output: which bandwidth hides communication behind
// computation, and what a step costs, for each way of summing (common/strategy/hiding.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/flags/command.h"
#include "common/plan/model.h"
#include "common/plan/prices.h"
#include "common/strategy/hiding.h"

namespace gleaner::cli {

struct HidingFlags {
  std::string compute_time;  // empty: no report
  std::string prices;        // path of a file; empty: no prices
};

void add_hiding_flags(flags::Command& command, HidingFlags& flags);

// Returns whether a flag is given.
bool wants_hiding(const HidingFlags& flags);

// Returns the time of --compute-time, in seconds. InvalidArgument names the flag.
absl::StatusOr<double> parse_compute_time(const std::string& text);
// Returns the prices of the file --prices; nothing: the path is empty. Errors as below.
absl::StatusOr<std::optional<plan::Prices>> read_prices(const std::string& path);

// Returns the account of each way of summing. Errors name the flag; those of the file are as read_file()'s, or
// InvalidArgument.
absl::StatusOr<std::vector<strategy::Hiding>> hiding_of(const HidingFlags& flags, const plan::Fleet& fleet,
                                                        double bytes);

// Returns the account as a JSON object, without a newline, and as text for people.
std::string hiding_json(const std::vector<strategy::Hiding>& all);
std::string hiding_table(const std::vector<strategy::Hiding>& all);

// Returns sentences about it: the least bandwidth that hides, what hides, and what is cheapest.
std::string hiding_text(const std::vector<strategy::Hiding>& all);

}  // namespace gleaner::cli
