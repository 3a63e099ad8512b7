// Recorded series in, decisions out: for tests, and for who asks what the autoscaler would have done. Pure.
//
// docs/autoscaler.md has the format. Decisions take effect at once, on machines as the recording has them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/autoscale/autoscale.h"

namespace gleaner::autoscale {

struct Decided {
  double at = 0;  // seconds
  std::string job;
  uint32_t had = 0;
  Verdict verdict;
};

// InvalidArgument says what of the recording is wrong.
absl::StatusOr<std::vector<Decided>> replay(const nlohmann::json& recording);

// A line for each decision that differs from the job's last one; all of them with `every`.
std::string to_text(const std::vector<Decided>& decisions, bool every);

}  // namespace gleaner::autoscale
