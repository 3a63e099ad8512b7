// Keys of what is to be looked at, each at most once at a time and in one worker only.
//
// A key added while it waits is there once; added while it is worked on, it comes again afterwards. add_rate_limited()
// delays by 5 ms · 2^failures, at most `max_delay`, until forget(). Thread safe. Source of the rules: client-go's
// workqueue.
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
  void add_after(const std::string& key, absl::Duration delay);  // the earliest of several counts
  void add_rate_limited(const std::string& key);
  void forget(const std::string& key);  // it went well
  uint32_t failures(const std::string& key) const;

  // The next key, when there is one; none: the queue was shut down. done() must follow.
  std::optional<std::string> next();
  void done(const std::string& key);
  void shut_down();
  size_t waiting() const;  // due, not yet taken

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace gleaner::kube
