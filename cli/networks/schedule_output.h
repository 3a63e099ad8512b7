// Writes schedules as JSON and as a table.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/collective/schedule.h"

namespace gleaner::cli {

// Passes the JSON of a schedule to `write` in pieces, so that a schedule with millions of operations needs little more
// memory. `written` is the number of ranks whose programs are complete. Stops at the first error of `write`, and
// returns it. docs/schedules.md describes the format.
absl::Status write_json(const collective::Schedule& schedule,
                        absl::FunctionRef<absl::Status(const std::string& piece, uint32_t written)> write);

// Returns a summary: what each rank sends and receives, and a line for each kind of step.
absl::StatusOr<std::string> to_table(const collective::Schedule& schedule);

}  // namespace gleaner::cli
