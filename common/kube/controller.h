// Runs a reconciler over a queue of keys: level-triggered, several keys at once, one key never twice at once.
#pragma once

#include <prometheus/registry.h>

#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/work_queue.h"

namespace gleaner::kube {

// What is next for a key.
struct Done {};  // nothing until something changes
struct RequeueAfter {
  absl::Duration delay;
};
struct Retry {  // soon, with backoff
  absl::Status why;
};
struct Terminal {  // trying again can't help until the object changes; logged
  absl::Status why;
};
using Result = std::variant<Done, RequeueAfter, Retry, Terminal>;

class Reconciler {
 public:
  virtual ~Reconciler() = default;
  // Looks at everything that `key` is about and does what is missing. Thread safe for different keys.
  virtual Result reconcile(const std::string& key) = 0;
};

class Controller {
 public:
  struct Options {
    std::string name;      // of threads, metrics and log lines
    uint32_t workers = 4;  // threads
  };
  // Metrics gleaner_reconcile_seconds{controller, result} and gleaner_reconcile_queue{controller} go to `registry` (may
  // be null).
  static std::unique_ptr<Controller> start(const Env& env, Options options, Reconciler& reconciler, WorkQueue& queue,
                                           prometheus::Registry* registry);
  virtual ~Controller() = default;  // shuts the queue down and waits for what runs
};

}  // namespace gleaner::kube
