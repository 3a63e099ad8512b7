// EventQueue passes events from gRPC's threads, from authenticators and from ModelThread to the thread of Jobs. Thread
// safe. Streams share ownership of the queue, and an authenticator's callback holds a weak pointer to it, so an event
// that arrives after the end of Jobs is dropped.
#pragma once

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/strategy/models.h"
#include "coordinator/roster/messages.h"
#include "coordinator/service/stream.h"

namespace gleaner::coordinator {

class Job;

// A member has opened the stream.
struct Opened {
  std::shared_ptr<Stream> stream;
};
// The stream has ended.
struct Closed {
  absl::Status why;
};
// The authenticator has answered. OK: it has accepted the bearer token.
struct Authenticated {
  absl::Status status;
};
// Models for a job are made (Modelling::carry_out()).
struct Modelled {
  std::weak_ptr<Job> job;
  ModelRequest request;
  absl::StatusOr<strategy::Models> models;
};
struct Event {
  StreamId stream = 0;
  std::variant<Opened, v1::MemberMessage, Closed, Authenticated, Modelled> what;
};

class EventQueue {
 public:
  // For streams. on_closed() is the last call of each stream.
  void on_message(StreamId stream, v1::MemberMessage message) { post({stream, std::move(message)}); }
  void on_closed(StreamId stream, const absl::Status& why) { post({stream, Closed{why}}); }

  void post(Event event) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
  }
  // Waits until there is an event, for `timeout` at most, and returns all events.
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
