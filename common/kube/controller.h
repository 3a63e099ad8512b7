// Controller runs a reconciler over the keys of a work queue. It is level-triggered. Its threads reconcile several keys
// at the same time, but never one key twice at the same time.
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

// The next action of the controller for a key.
struct Done {};  // no action until the key is added again
struct RequeueAfter {
  absl::Duration delay;
};
struct Retry {  // reconciles again soon, with backoff
  absl::Status why;
};
struct Terminal {  // a retry can't help until the object changes; the controller logs the reason
  absl::Status why;
};
using Result = std::variant<Done, RequeueAfter, Retry, Terminal>;

class Reconciler {
 public:
  virtual ~Reconciler() = default;
  // Compares the actual state of `key` with the desired one and makes the changes that are missing. Several threads
  // call this at the same time, for different keys.
  virtual Result reconcile(const std::string& key) = 0;
};

class Controller {
 public:
  struct Options {
    std::string name;      // used in thread names, metrics and log lines
    uint32_t workers = 4;  // threads
  };
  // Starts the threads. `reconciler` and `queue` must outlive the controller. Registers the metrics
  // gleaner_reconcile_seconds{controller, result} and gleaner_reconcile_queue{controller} with `registry`, which may be
  // null.
  static std::unique_ptr<Controller> start(const Env& env, Options options, Reconciler& reconciler, WorkQueue& queue,
                                           prometheus::Registry* registry);
  virtual ~Controller() = default;  // shuts the queue down and waits for running reconciliations
};

}  // namespace gleaner::kube
