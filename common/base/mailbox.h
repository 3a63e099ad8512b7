// How other threads hand work to the thread that owns a loop: post() from anywhere, drain() on the owner.
//
// One lock per message, and none to find that there is none; for requests and plan changes, not for partitions. After
// close() messages are dropped.
#pragma once

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace gleaner {

class Mailbox {
 public:
  // `wake` makes the owner call drain() soon; it is called without the lock held, by the thread that posts the first
  // message since the last drain().
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void post(std::function<void()> message) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (closed_) return;
      messages_.push_back(std::move(message));
      if (messages_.size() > 1) return;  // the owner is awake, or about to be
      posted_.store(true, std::memory_order_release);
    }
    wake_();
  }

  // The owner asks: there is nothing to drain.
  bool empty() const { return !posted_.load(std::memory_order_acquire); }

  // Runs what has been posted, in order.
  void drain() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (empty()) return;
    {
      absl::MutexLock lock(&mutex_);
      running_.swap(messages_);
      posted_.store(false, std::memory_order_relaxed);
    }
    for (auto& message : running_) message();
    running_.clear();
  }

  void close() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    messages_.clear();
  }

 private:
  const std::function<void()> wake_;
  absl::Mutex mutex_;
  std::vector<std::function<void()>> messages_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> posted_ = false;
  std::vector<std::function<void()>> running_;  // the owner's
};

}  // namespace gleaner
