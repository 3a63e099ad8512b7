#include "comm-lib/runtime/handles.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::runtime {
namespace {

absl::Status not_open(uint64_t handle) {
  return absl::InvalidArgumentError(absl::StrCat(
      "handle ", handle, " is not open: it was waited for before, or gln_push_pull() has never returned it"));
}

}  // namespace

uint64_t Handles::open(std::unique_ptr<DeviceMarks> marks) {
  absl::MutexLock lock(&mutex_);
  open_.emplace(++last_, State{false, absl::OkStatus(), std::move(marks)});
  ++unfinished_;
  return last_;
}

void Handles::finish(uint64_t handle, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(handle);
  if (found == open_.end() || found->second.finished) return;
  found->second.finished = true;
  found->second.status = status;
  --unfinished_;
  unreported_.push_back(handle);
}

void Handles::close(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  for (auto& [handle, state] : open_) {
    if (state.finished) continue;
    state.finished = true;
    state.status = status;
    unreported_.push_back(handle);
  }
  unfinished_ = 0;
}

absl::StatusOr<bool> Handles::done(uint64_t handle) const {
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(handle);
  if (found == open_.end()) return not_open(handle);
  return found->second.finished;
}

absl::StatusOr<Handles::Ended> Handles::wait(uint64_t handle, absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto finished = [this, handle]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = open_.find(handle);
    return found == open_.end() || found->second.finished;
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&finished), timeout)) {
    return absl::DeadlineExceededError(absl::StrCat("not done after ", absl::FormatDuration(timeout)));
  }
  const auto found = open_.find(handle);
  if (found == open_.end()) return not_open(handle);
  Ended ended{std::move(found->second.status), std::move(found->second.marks)};
  open_.erase(found);
  drop_waited_for();
  return ended;
}

void Handles::put_back(uint64_t handle, Ended ended) {
  absl::MutexLock lock(&mutex_);
  open_.emplace(handle, State{true, std::move(ended.outcome), std::move(ended.marks)});
}

absl::StatusOr<uint64_t> Handles::next_done(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    drop_waited_for();
    return closed_ || !unreported_.empty();
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&something), timeout)) {
    return absl::DeadlineExceededError("no push_pull or call ended in time");
  }
  if (unreported_.empty()) return absl::FailedPreconditionError("the session is closing");
  const uint64_t handle = unreported_.front();
  unreported_.pop_front();
  return handle;
}

bool Handles::wait_all(absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return unfinished_ == 0; };
  return mutex_.AwaitWithTimeout(absl::Condition(&none), timeout);
}

// Drops handles that wait() has closed from the front of the queue, so that the queue does not grow if next_done() is
// not called.
void Handles::drop_waited_for() {
  while (!unreported_.empty() && !open_.contains(unreported_.front())) unreported_.pop_front();
}

}  // namespace gleaner::runtime
