#include "coordinator/failures/start_timeout.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/measure/stalls.h"

namespace gleaner::coordinator {

std::optional<Failure> StartTimeout::on_tick(bool reattaching, std::optional<uint32_t> asked, absl::Duration now,
                                             Actions& actions) {
  if (auto due = warning(reattaching, now)) actions.warnings.push_back(*std::move(due));
  return check(reattaching, asked, now);
}

std::optional<Failure> StartTimeout::check(bool reattaching, std::optional<uint32_t> asked, absl::Duration now) const {
  if (!is_over(now)) return std::nullopt;
  const std::string within = absl::StrCat(" within ", absl::FormatDuration(options_.start_timeout));
  const std::vector<uint32_t> missing = roster_.missing();
  if (missing.empty()) {
    return Failure{absl::DeadlineExceededError(absl::StrCat("no member that returned sent the plan in force", within)),
                   asked};
  }
  return Failure{absl::DeadlineExceededError(
                     reattaching ? absl::StrCat(roster_.names(missing), " did not come back", within,
                                                " of the coordinator's restart")
                                 : absl::StrCat(roster_.names(missing), " did not join", within,
                                                missing.size() == 1 ? "; is it running" : "; are they running",
                                                ", with this coordinator's address and the job's token?")),
                 missing.front()};
}

std::optional<std::string> StartTimeout::warning(bool reattaching, absl::Duration now) {
  const std::vector<uint32_t> missing = roster_.missing();
  const bool does_any_member_wait = roster_.joined_ranks() + roster_.joined_summers() > 0;
  if (is_over(now) || missing.empty() || now - started_ < kStallAfter || now < next_warning_) return std::nullopt;
  if (may_resume_ && !does_any_member_wait) return std::nullopt;
  next_warning_ = now + kMissingEvery;
  return absl::StrCat("waiting for ", roster_.names(missing), " to ", reattaching ? "come back: " : "join: ",
                      absl::FormatDuration(absl::Floor(now - started_, absl::Seconds(1))), " of at most ",
                      absl::FormatDuration(options_.start_timeout));
}

}  // namespace gleaner::coordinator
