// Findings of Core's parts: a member is lost, or the job fails. A part returns a finding, and Core carries it out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"

namespace gleaner::coordinator {

// The reason for which a job fails.
struct Failure {
  absl::Status status;
  std::optional<uint32_t> culprit;  // the seat of the member that made the job fail, if one is known
  bool is_loss = false;             // the culprit is lost or does not answer; false: it violated a rule
  absl::Status own;                 // the error of the local ranks of the culprit's worker; OK: `status`

  friend bool operator==(const Failure&, const Failure&) = default;
};

// A member is lost. The loss of a rank fails the job. The job goes on without a lost summer.
struct Loss {
  uint32_t seat = 0;
  std::string why;

  friend bool operator==(const Loss&, const Loss&) = default;
};

// monostate: nothing is wrong.
using Finding = std::variant<std::monostate, Loss, Failure>;

}  // namespace gleaner::coordinator
