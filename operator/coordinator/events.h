// Events for the thread of Jobs, from gRPC's threads and from the checks of bearer tokens. Thread safe. All of them
// share ownership, so that an answer that comes after the end of Jobs is dropped without harm.
#pragma once

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "operator/coordinator/stream.h"

namespace gleaner::coordinator {

struct Opened {
  std::shared_ptr<Stream> stream;
};
struct Closed {
  absl::Status why;
};
struct Authenticated {
  absl::Status status;
};
struct Event {
  StreamId stream = 0;
  std::variant<Opened, v1::MemberMessage, Closed, Authenticated> what;
};

class Events final : public Inbox {
 public:
  void on_message(StreamId stream, v1::MemberMessage message) override { post({stream, std::move(message)}); }
  void on_closed(StreamId stream, const absl::Status& why) override { post({stream, Closed{why}}); }

  void post(Event event) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
  }
  // All there are, once there is one or the time is over.
  std::vector<Event> take(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !events_.empty(); };
    mutex_.AwaitWithTimeout(absl::Condition(&some), timeout);
    return std::exchange(events_, {});
  }

 private:
  absl::Mutex mutex_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::coordinator
