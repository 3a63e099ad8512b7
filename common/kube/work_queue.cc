#include "common/kube/work_queue.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"

namespace gleaner::kube {

struct WorkQueue::State {
  State(const Clock& a_clock, absl::Duration a_max_delay) : clock(a_clock), max_delay(a_max_delay) {}

  void add(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void add_at(const std::string& key, absl::Duration due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void move_due() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const Clock& clock;
  const absl::Duration max_delay;
  absl::Mutex mutex;
  absl::CondVar changed;
  bool shut ABSL_GUARDED_BY(mutex) = false;
  std::deque<std::string> ready ABSL_GUARDED_BY(mutex);
  absl::flat_hash_set<std::string> dirty ABSL_GUARDED_BY(mutex);    // in `ready`, or to be queued again by done()
  absl::flat_hash_set<std::string> working ABSL_GUARDED_BY(mutex);  // between next() and done()
  std::set<std::pair<absl::Duration, std::string>> delayed ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<std::string, absl::Duration> due_of ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<std::string, uint32_t> failures ABSL_GUARDED_BY(mutex);
};

void WorkQueue::State::add(const std::string& key) {
  if (shut || !dirty.insert(key).second || working.contains(key)) return;
  ready.push_back(key);
  changed.Signal();
}

void WorkQueue::State::add_at(const std::string& key, absl::Duration due) {
  if (shut) return;
  const auto [known, is_new] = due_of.try_emplace(key, due);
  if (!is_new) {
    if (known->second <= due) return;
    delayed.erase({known->second, key});
    known->second = due;
  }
  const auto added = delayed.emplace(due, key).first;
  // All waiting threads still wait for the key that was due first before.
  if (added == delayed.begin()) changed.SignalAll();
}

void WorkQueue::State::move_due() {
  while (!delayed.empty() && delayed.begin()->first <= clock.since_start()) {
    const std::string key = delayed.begin()->second;
    delayed.erase(delayed.begin());
    due_of.erase(key);
    add(key);
  }
}

WorkQueue::WorkQueue(const Clock& clock, absl::Duration max_delay)
    : state_(std::make_unique<State>(clock, max_delay)) {}

WorkQueue::~WorkQueue() = default;

void WorkQueue::add(const std::string& key) {
  absl::MutexLock lock(&state_->mutex);
  state_->add(key);
}

void WorkQueue::add_after(const std::string& key, absl::Duration delay) {
  absl::MutexLock lock(&state_->mutex);
  if (delay <= absl::ZeroDuration()) return state_->add(key);
  state_->add_at(key, state_->clock.since_start() + delay);
}

void WorkQueue::add_rate_limited(const std::string& key) {
  absl::MutexLock lock(&state_->mutex);
  const uint32_t failures = state_->failures[key]++;
  const absl::Duration delay = absl::Milliseconds(5) * (uint64_t{1} << std::min(failures, 40U));
  state_->add_at(key, state_->clock.since_start() + std::min(delay, state_->max_delay));
}

void WorkQueue::forget(const std::string& key) {
  absl::MutexLock lock(&state_->mutex);
  state_->failures.erase(key);
}

uint32_t WorkQueue::failures(const std::string& key) const {
  absl::MutexLock lock(&state_->mutex);
  const auto found = state_->failures.find(key);
  return found == state_->failures.end() ? 0 : found->second;
}

std::optional<std::string> WorkQueue::next() {
  State& state = *state_;
  absl::MutexLock lock(&state.mutex);
  while (!state.shut) {
    state.move_due();
    if (!state.ready.empty()) {
      std::string key = std::move(state.ready.front());
      state.ready.pop_front();
      state.dirty.erase(key);
      state.working.insert(key);
      return key;
    }
    if (state.delayed.empty()) {
      state.changed.Wait(&state.mutex);
    } else {
      state.changed.WaitWithTimeout(&state.mutex, state.delayed.begin()->first - state.clock.since_start());
    }
  }
  return std::nullopt;
}

void WorkQueue::done(const std::string& key) {
  absl::MutexLock lock(&state_->mutex);
  state_->working.erase(key);
  if (!state_->dirty.contains(key) || state_->shut) return;
  state_->ready.push_back(key);
  state_->changed.Signal();
}

void WorkQueue::shut_down() {
  absl::MutexLock lock(&state_->mutex);
  state_->shut = true;
  state_->changed.SignalAll();
}

size_t WorkQueue::waiting() const {
  absl::MutexLock lock(&state_->mutex);
  state_->move_due();
  return state_->ready.size();
}

}  // namespace gleaner::kube
