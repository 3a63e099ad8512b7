// What is to be stopped when a Client::Cancel is cancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/kube/client.h"

namespace gleaner::kube {

class Cancellation final : public Client::Cancel {
 public:
  void cancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool cancelled() const ABSL_LOCKS_EXCLUDED(mutex_);

  // While it lives, `action` is called once on cancellation; at once when that has been. `cancellation` may be null.
  // The action may still run on another thread when the destructor has returned: it owns what it touches.
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
