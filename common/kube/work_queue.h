// WorkQueue is a queue of keys to process. A key is in the queue at most once, and at most one worker processes it at a
// time.
//
// Adding a key that is queued has no effect. A key that is added while a worker processes it is queued again after
// done(). add_rate_limited() delays a key by 5 ms · 2^failures, at most `max_delay`; forget() resets the failures.
// Thread safe. The rules are those of client-go's workqueue.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/base/env.h"

namespace gleaner::kube {

class WorkQueue {
 public:
  explicit WorkQueue(const Clock& clock, absl::Duration max_delay = absl::Minutes(5));
  ~WorkQueue();

  void add(const std::string& key);
  void add_after(const std::string& key, absl::Duration delay);  // of several delays of a key the earliest applies
  void add_rate_limited(const std::string& key);
  void forget(const std::string& key);  // resets the failures, after a success
  uint32_t failures(const std::string& key) const;

  // Waits for the next key and returns it; none once the queue is shut down. The caller processes the key and then
  // calls done() with it.
  std::optional<std::string> next();
  void done(const std::string& key);
  void shut_down();
  size_t waiting() const;  // number of keys that are due and that no worker has taken

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace gleaner::kube
