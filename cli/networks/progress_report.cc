#include "cli/networks/progress_report.h"

#include <cstdio>
#include <utility>

namespace gleaner::cli {

ProgressReport::ProgressReport(const Clock& clock, std::string command)
    : clock_(clock), command_(std::move(command)), begin_(clock.since_start()) {}

void ProgressReport::update(absl::FunctionRef<std::string()> text) {
  const absl::Duration now = elapsed();
  if (now < next_) return;
  std::fprintf(stderr, "%s: %s\n", command_.c_str(), text().c_str());
  next_ = now + absl::Seconds(1);
}

}  // namespace gleaner::cli
