// The lines of `gleaner explain` about the time of a step: the plan's, the bound, the measured one, the limit, and the
// gain of one more summer. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/cluster/explain_view.h"

namespace gleaner::cli {

// Bounds with a smaller relative difference count as equal.
inline constexpr double kSame = 1e-9;

// Returns whether a bound is longer than a time by more than the rounding of a ReductionPlan's figures, which are whole
// microseconds and bytes.
bool is_longer(double bound_seconds, double seconds);
// Returns whether a summer could take part in a sum. The plan of an older operator names no strategies.
bool uses_summers(const api::ReductionPlanSpec& spec);
// Returns whether the link of some machine limits the step.
bool has_binding(const ExplainedJob& job);

std::string step_lines(const ExplainedJob& job);
std::string limit_lines(const ExplainedJob& job);
// Empty: no uplink binds.
std::string uplink_line(const FoundUplink& uplink);
// Null: no uplink binds. {"error"}: it is unknown.
nlohmann::json uplink_json(const FoundUplink& uplink);

}  // namespace gleaner::cli
