// Mailbox passes work from other threads to the *loop thread*, which runs an event loop. Any thread may call post();
// the loop thread calls drain().
//
// post() takes a lock. empty() takes none, and neither does drain() of an empty mailbox. Mailbox is meant for requests
// and plan changes, not for partitions. Messages that are posted after close() are dropped.
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
  // `wake` must make the loop thread call drain() soon. The thread that posts the first message since the last drain()
  // calls `wake`, without the lock held.
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void post(std::function<void()> message) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (closed_) return;
      messages_.push_back(std::move(message));
      if (messages_.size() > 1) return;  // the loop thread is awake, or has been woken
      posted_.store(true, std::memory_order_release);
    }
    wake_();
  }

  // Returns whether drain() has nothing to do. Only the loop thread calls this.
  bool empty() const { return !posted_.load(std::memory_order_acquire); }

  // Runs the posted messages in order. Only the loop thread calls this.
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

  // Drops all messages that were posted and not drained, and all later ones.
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
  std::vector<std::function<void()>> running_;  // used by the loop thread only
};

}  // namespace gleaner
