#include "cli/launcher/job_progress.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/units.h"

namespace gleaner::launcher {

std::string JobProgress::line(const JobCounts& counts, absl::Duration now) {
  if (counts.steps == 0) return "";
  if (counts.steps > steps_) {
    const auto steps = static_cast<double>(counts.steps - steps_);
    const double seconds = absl::ToDoubleSeconds(now - at_);
    const double communicated = counts.communication_seconds - communication_seconds_;
    rates_.clear();
    if (steps_ > 0 && seconds > 0) absl::StrAppend(&rates_, ", ", absl::StrFormat("%.3g steps/s", steps / seconds));
    if (communicated > 0) {
      absl::StrAppend(&rates_, ", goodput ", format_bytes(steps * counts.bytes_per_step / communicated),
                      "/s per worker");
    }
    if (communicated > 0 && counts.bound_seconds > 0) {
      const double share = steps * counts.bound_seconds / communicated;
      absl::StrAppend(&rates_, ", ", absl::StrFormat("%.0f %% of its bound", 100 * share));
    }
    steps_ = counts.steps;
    communication_seconds_ = counts.communication_seconds;
    at_ = now;
  }
  const std::string summers =
      counts.summers == 0 ? "" : absl::StrCat(", ", counts.summers, counts.summers == 1 ? " summer" : " summers");
  return absl::StrCat("gleaner: ", job_ == "default" ? "" : absl::StrCat(job_, ": "), "step ", counts.steps, rates_,
                      summers);
}

}  // namespace gleaner::launcher
