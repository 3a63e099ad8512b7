#include "cli/launcher/job_progress.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/text_table.h"
#include "common/base/units.h"

namespace gleaner::launcher {

std::string JobProgress::line(const JobCounts& counts, absl::Duration now) {
  if (counts.steps == 0) return "";
  if (counts.steps > steps_) {
    const auto steps = static_cast<double>(counts.steps - steps_);
    const double seconds = absl::ToDoubleSeconds(now - at_);
    if (steps_ > 0 && seconds > 0) rate_ = absl::StrFormat(", %.3g steps/s", steps / seconds);
    steps_ = counts.steps;
    at_ = now;
  }
  const double goodput = counts.goodput_bytes_per_second;
  const std::string summers = counts.summers == 0 ? "" : absl::StrCat(", ", counted(counts.summers, "summer"));
  return absl::StrCat("gleaner: ", job_ == "default" ? "" : absl::StrCat(job_, ": "), "step ", counts.steps, rate_,
                      goodput > 0 ? absl::StrCat(", goodput ", format_bytes(goodput), "/s per worker") : "",
                      counts.efficiency.empty() ? "" : absl::StrCat(", ", counts.efficiency), summers);
}

}  // namespace gleaner::launcher
