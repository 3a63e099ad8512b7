#include "comm-lib/runtime/rank_state.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::runtime {

absl::Status RankState::wait_until_open(absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  const auto decided = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return phase_ != Phase::kOpening; };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&decided), timeout)) {
    return absl::DeadlineExceededError(absl::StrCat("the job did not start within ", absl::FormatDuration(timeout),
                                                    ": still waiting for ", waiting_for_));
  }
  return failure_;
}

absl::Status RankState::usable() const {
  absl::MutexLock lock(&mutex_);
  switch (phase_) {
    case Phase::kOpening:
      return absl::FailedPreconditionError("the session is not open yet");
    case Phase::kOpen:
      return absl::OkStatus();
    case Phase::kFailed:
      return failure_;
    case Phase::kClosed:
      return absl::FailedPreconditionError("the session is closed");
  }
  return absl::InternalError("unknown phase");
}

absl::Status RankState::wait_until_quiet() const {
  absl::MutexLock lock(&mutex_);
  const auto quiet = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return quiet_ || phase_ == Phase::kFailed; };
  mutex_.AwaitWithTimeout(absl::Condition(&quiet), welcome_.deadline);
  return failure_;
}

gln_rank_info RankState::rank_info() const {
  absl::MutexLock lock(&mutex_);
  gln_rank_info info = GLN_RANK_INFO_INIT;
  info.worker = welcome_.member;  // differs from Config::worker in elastic jobs
  info.workers = welcome_.workers;
  info.local_rank = local_rank_;
  info.local_ranks = welcome_.local_ranks;
  info.rank = welcome_.member * welcome_.local_ranks + local_rank_;
  info.ranks = welcome_.workers * welcome_.local_ranks;
  info.summers = welcome_.summers;
  return info;
}

gln_stats RankState::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

std::string RankState::transports() const {
  absl::MutexLock lock(&mutex_);
  return transports_;
}

bool RankState::is_opening() const {
  absl::MutexLock lock(&mutex_);
  return phase_ == Phase::kOpening;
}

bool RankState::is_elastic() const {
  absl::MutexLock lock(&mutex_);
  return welcome_.elastic;
}

absl::Duration RankState::deadline() const {
  absl::MutexLock lock(&mutex_);
  return welcome_.deadline;
}

void RankState::set_welcome(const control::Welcome& welcome) {
  absl::MutexLock lock(&mutex_);
  welcome_ = welcome;
}

void RankState::set_summers(uint32_t summers) {
  absl::MutexLock lock(&mutex_);
  welcome_.summers = summers;
}

void RankState::set_connected(std::string transports) {
  absl::MutexLock lock(&mutex_);
  if (phase_ == Phase::kOpening) phase_ = Phase::kOpen;
  transports_ = std::move(transports);
}

void RankState::set_quiet(bool quiet) {
  absl::MutexLock lock(&mutex_);
  quiet_ = quiet;
}

void RankState::set_waiting_for(std::string description) {
  absl::MutexLock lock(&mutex_);
  waiting_for_ = std::move(description);
}

void RankState::set_stats(const gln_stats& stats) {
  absl::MutexLock lock(&mutex_);
  stats_ = stats;
}

bool RankState::fail(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (has_ended()) return false;
  phase_ = Phase::kFailed;
  failure_ = status;
  return true;
}

void RankState::close() {
  absl::MutexLock lock(&mutex_);
  if (!has_ended()) phase_ = Phase::kClosed;
}

}  // namespace gleaner::runtime
