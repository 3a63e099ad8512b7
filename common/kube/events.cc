#include "common/kube/events.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/backoff.h"
#include "common/base/thread.h"
#include "common/kube/cancellation.h"
#include "common/kube/object.h"

namespace gleaner::kube {
namespace {

constexpr absl::Duration kWriteTimeout = absl::Seconds(10);
constexpr absl::Duration kLastWrites = absl::Seconds(2);
constexpr absl::Duration kLook = absl::Milliseconds(200);  // interval of checks for series that may be written again

// Returns whether a retry may help. Otherwise (the namespace is being deleted, or permission is missing) the Event is
// dropped.
bool may_succeed_later(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsInternal(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsUnauthenticated(status) || absl::IsAborted(status) || absl::IsCancelled(status);
}

class ThreadedRecorder : public EventRecorder {
 public:
  ThreadedRecorder(const Env& env, Client& client, const std::string& component, const std::string& instance)
      : env_(env),
        component_(component),
        client_(client.bounded(kWriteTimeout, &cancel_)),
        log_(component, instance),
        thread_([this] { run(); }) {}

  ~ThreadedRecorder() override {
    bool in_time = false;
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
      in_time = mutex_.AwaitWithTimeout(absl::Condition(&ended_), kLastWrites);
    }
    if (!in_time) cancel_.cancel();
    thread_.join();
  }

  void normal(const ObjectReference& object, absl::string_view reason, absl::string_view message) override {
    record(object, "Normal", reason, message);
  }
  void warning(const ObjectReference& object, absl::string_view reason, absl::string_view message) override {
    record(object, "Warning", reason, message);
  }

 private:
  void record(const ObjectReference& object, absl::string_view type, absl::string_view reason,
              absl::string_view message) {
    absl::MutexLock lock(&mutex_);
    log_.record({env_.clock->since_start(), env_.clock->now()}, object, type, reason, message);
  }
  bool has_work() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ || log_.waiting() > 0; }

  void run();
  std::optional<EventLog::Write> next_write();
  // Returns false if the recorder is stopping and this write failed, so that further writes would likely fail, too.
  bool write(const EventLog::Write& write, Backoff& backoff);

  const Env env_;
  const std::string component_;
  Cancellation cancel_;
  const std::unique_ptr<Client> client_;
  absl::Mutex mutex_;
  EventLog log_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

void ThreadedRecorder::run() {
  name_this_thread("gln-events");
  Backoff backoff(*env_.random, absl::Milliseconds(200), absl::Seconds(10));
  while (const auto next = next_write()) {
    if (!write(*next, backoff)) break;
  }
  absl::MutexLock lock(&mutex_);
  ended_ = true;
}

// Waits for the next Event to write. None: the recorder is stopping, and all Events are written.
std::optional<EventLog::Write> ThreadedRecorder::next_write() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    mutex_.Await(absl::Condition(this, &ThreadedRecorder::has_work));
    if (auto write = log_.next(env_.clock->since_start(), stopping_)) return write;
    if (stopping_) return std::nullopt;
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kLook);
  }
}

bool ThreadedRecorder::write(const EventLog::Write& write, Backoff& backoff) {
  const absl::Status status = client_->apply(events(), write.event, {component_, true, ""}).status();
  if (status.ok()) {
    backoff.reset();
    return true;
  }
  if (!may_succeed_later(status)) {
    env_.log->debug("an Event was not written", "event", key_of(write.event), "why", status.ToString());
    return true;
  }
  absl::MutexLock lock(&mutex_);
  log_.failed(write);
  if (stopping_) return false;
  mutex_.AwaitWithTimeout(absl::Condition(&stopping_), backoff.next());
  return true;
}

}  // namespace

std::unique_ptr<EventRecorder> EventRecorder::start(const Env& env, Client& client, const std::string& component,
                                                    const std::string& instance) {
  return std::make_unique<ThreadedRecorder>(env, client, component, instance);
}

}  // namespace gleaner::kube
