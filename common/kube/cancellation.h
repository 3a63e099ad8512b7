// Cancellation cancels calls of a Client. Any thread may cancel and register. A cancellation is permanent: later calls
// with it end immediately.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace gleaner::kube {

class Cancellation {
 public:
  void cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  bool cancelled() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Registers `action`, which cancel() calls once. If the cancellation has happened already, the constructor calls it.
  // The destructor removes the action. `cancellation` may be null. The action may still run on another thread after the
  // destructor has returned, so it must own the data that it uses.
  class Registration {
   public:
    Registration(Cancellation* cancellation, std::function<void()> action);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    Cancellation* const cancellation_;
    uint64_t id_ = 0;
  };

 private:
  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, std::function<void()>> actions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::kube
