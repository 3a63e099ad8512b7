// The status that ends a session when the workers of an elastic job change: the rank then joins the next round. A
// payload distinguishes it from all other errors, whatever their code.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace gleaner::runtime {

inline constexpr absl::string_view kWorkersChanged = "gleaner.dev/workers-changed";

inline absl::Status workers_changed(absl::string_view why) {
  absl::Status status = absl::AbortedError(why);
  status.SetPayload(kWorkersChanged, absl::Cord());
  return status;
}

inline bool is_workers_changed(const absl::Status& status) { return status.GetPayload(kWorkersChanged).has_value(); }

}  // namespace gleaner::runtime
