#include "cli/coordinated_job.h"

#include "absl/strings/str_cat.h"

namespace gleaner::cli {

std::optional<absl::Status> CoordinatedJob::outcome() const {
  std::optional<absl::Status> outcome = server_.outcome();
  // The job does not fail if workers end well without having joined it.
  if (outcome.has_value() && ended_ && absl::IsCancelled(*outcome)) outcome = absl::OkStatus();
  if (outcome.has_value() && !outcome->ok() && !interruption_.empty()) outcome = absl::AbortedError(interruption_);
  return outcome;
}

std::optional<size_t> CoordinatedJob::culprit() const {
  const auto culprit = server_.culprit();
  if (!culprit.has_value()) return std::nullopt;
  const size_t ranks = size_t{options_.workers} * options_.local_ranks;
  if (culprit->member >= options_.workers) return ranks + culprit->member - options_.workers;
  return size_t{culprit->member} * options_.local_ranks + culprit->local_rank;
}

bool CoordinatedJob::worker_ended(size_t index, const launcher::Exit& exit, const std::string& how) {
  const auto worker = static_cast<uint32_t>(index / options_.local_ranks);
  const auto local_rank = static_cast<uint32_t>(index % options_.local_ranks);
  if (!options_.is_elastic()) {
    server_.rank_exited(worker, local_rank, exit.well(), how);
    return false;
  }
  if (const auto outcome = server_.outcome(); outcome.has_value()) return outcome->ok();
  if (!exit.well()) server_.worker_ended(worker, absl::UnavailableError(absl::StrCat("its process ", how)));
  return true;
}

bool CoordinatedJob::summer_ended(size_t index, const launcher::Exit& exit, const std::string& how) {
  const auto summer = static_cast<uint32_t>(index - size_t{options_.workers} * options_.local_ranks);
  const bool was_killed = exit.signal != 0;
  const bool can_serve = exit.well() || was_killed || options_.is_elastic() || server_.summer_has_joined(summer);
  if (can_serve) {
    server_.summer_ended(summer, absl::UnavailableError(absl::StrCat("its process ", how)));
  } else {
    server_.stop(absl::UnavailableError(absl::StrCat("summer ", summer, " ", how, " before it had joined the job")));
  }
  return can_serve;
}

void CoordinatedJob::end() {
  ended_ = true;
  server_.stop(absl::CancelledError("every worker has ended"));
}

void CoordinatedJob::stop() { server_.stop(absl::AbortedError(interruption_)); }

}  // namespace gleaner::cli
