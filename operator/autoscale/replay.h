// Replays recorded series through the Autoscaler, for tests and for `gleaner autoscale`, which shows the decisions that
// the autoscaler would have made. No I/O.
//
// docs/autoscaler.md#what-would-it-have-done has the format. Decisions take effect immediately. The spare resources of
// machines are as recorded.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/autoscale/autoscale.h"

namespace gleaner::autoscale {

struct Decided {
  double at = 0;  // seconds since the start of the recording
  std::string job;
  uint32_t had = 0;
  Verdict verdict;
};

// Returns all decisions in order. InvalidArgument: the recording is malformed; the message says how.
absl::StatusOr<std::vector<Decided>> replay(const nlohmann::json& recording);

// Returns a line for each decision that differs from the previous one of the same job; with `every`, a line for each
// decision.
std::string to_text(const std::vector<Decided>& decisions, bool every);

}  // namespace gleaner::autoscale
