// ModelThread carries out the requests for models of all jobs (modelling.h), one after the other, on the thread
// "gln-models". Thread safe.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/service/event_queue.h"

namespace gleaner::coordinator {

class ModelThread {
 public:
  // The thread calls `answer` with each answer. ResourceExhausted: the system starts no more threads.
  static absl::StatusOr<std::unique_ptr<ModelThread>> start(std::function<void(Modelled)> answer);
  // Waits for the request that is being carried out, and drops the others.
  ~ModelThread();

  void add(std::weak_ptr<Job> job, ModelRequest request) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Task {
    std::weak_ptr<Job> job;
    ModelRequest request;
  };

  explicit ModelThread(std::function<void(Modelled)> answer) : answer_(std::move(answer)) {}
  void run() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<void(Modelled)> answer_;
  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace gleaner::coordinator
