#include "common/kube/reflector.h"

#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "common/base/thread.h"
#include "common/kube/backoff.h"
#include "common/kube/object.h"

namespace gleaner::kube {
namespace {

constexpr absl::Duration kPageTimeout = absl::Seconds(60);
// A watch that the server ends sooner, with nothing in it, is a server that sends its clients away.
constexpr absl::Duration kShortWatch = absl::Seconds(1);

class ThreadedReflector : public Reflector {
 public:
  ThreadedReflector(const Env& env, Client& client, Options options, Sink& sink)
      : env_(env),
        client_(client),
        options_(std::move(options)),
        sink_(sink),
        cancel_(client.make_cancel()),
        lister_(client.bounded(kPageTimeout, cancel_.get())),
        backoff_(*env.random, options_.first_delay, options_.longest_delay),
        thread_([this] { run(); }) {}

  ~ThreadedReflector() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    cancel_->cancel();
    thread_.join();
  }

  bool wait_synced(absl::Duration timeout) const override {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&synced_), timeout);
  }
  Counts counts() const override {
    absl::MutexLock lock(&mutex_);
    return counts_;
  }

 private:
  void run();
  absl::Status list();
  absl::Status watch();
  void on_event(const WatchEvent& event);
  void count(uint64_t Counts::*what) {
    absl::MutexLock lock(&mutex_);
    ++(counts_.*what);
  }
  void log_break(const absl::Status& why) const;
  void log_recovery();
  bool stopped_within(absl::Duration delay) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&stopping_), delay);
  }

  const Env env_;
  Client& client_;
  const Options options_;
  Sink& sink_;
  const std::unique_ptr<Client::Cancel> cancel_;
  const std::unique_ptr<Client> lister_;

  // The thread's own.
  std::string version_;  // of the last list, event or bookmark; empty: list
  uint32_t page_size_ = kPageSize;
  Backoff backoff_;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

void ThreadedReflector::run() {
  name_this_thread("gln-watch");
  while (!stopped_within(absl::ZeroDuration())) {
    const bool listing = version_.empty();
    const absl::Status status = listing ? list() : watch();
    if (status.ok()) continue;
    if (stopped_within(absl::ZeroDuration())) return;
    if (!listing && absl::IsDeadlineExceeded(status)) {
      count(&Counts::stalls);
      continue;
    }
    count(&Counts::breaks);
    if (absl::IsOutOfRange(status)) {
      count(&Counts::expired);
      version_.clear();
      // Pages that expire while they are read: once all at once, which can't.
      if (listing) page_size_ = 0;
    }
    log_break(status);
    if (stopped_within(backoff_.next())) return;
  }
}

absl::Status ThreadedReflector::list() {
  count(&Counts::lists);
  sink_.begin_list();
  auto version =
      lister_->list_pages(options_.resource, options_.selector, page_size_, [this](const std::vector<Object>& page) {
        for (const Object& object : page) sink_.put(object);
      });
  if (!version.ok()) return version.status();
  sink_.end_list();
  version_ = *std::move(version);
  page_size_ = kPageSize;
  absl::MutexLock lock(&mutex_);
  synced_ = true;
  return absl::OkStatus();
}

absl::Status ThreadedReflector::watch() {
  count(&Counts::watches);
  const absl::Duration start = env_.clock->since_start();
  bool silent = true;
  absl::Status status =
      client_.watch(options_.resource, options_.selector, version_, *cancel_, [this, &silent](const WatchEvent& event) {
        if (std::exchange(silent, false)) log_recovery();
        on_event(event);
      });
  if (status.ok() && silent && env_.clock->since_start() - start < kShortWatch) {
    return absl::UnavailableError("the server ended a watch at once");
  }
  if (status.ok()) log_recovery();
  return status;
}

void ThreadedReflector::on_event(const WatchEvent& event) {
  switch (event.type) {
    case EventType::kBookmark:
      break;
    case EventType::kDeleted:
      sink_.remove(event.object);
      break;
    case EventType::kAdded:
    case EventType::kModified:
      sink_.put(event.object);
      break;
  }
  if (std::string version = resource_version_of(event.object); !version.empty()) version_ = std::move(version);
  count(event.type == EventType::kBookmark ? &Counts::bookmarks : &Counts::events);
}

// The first failure of a row, and then the 2nd, 4th, 8th ...: outages are long and the machines many.
void ThreadedReflector::log_break(const absl::Status& why) const {
  const uint32_t failures = backoff_.failures() + 1;
  if ((failures & (failures - 1)) != 0) return;
  env_.log->warning("following the API server failed, trying again; what was read last is used meanwhile", "resource",
                    options_.resource.plural, "failures", failures, "why", why.ToString());
}

void ThreadedReflector::log_recovery() {
  if (backoff_.failures() > 0) {
    env_.log->info("following the API server again", "resource", options_.resource.plural, "version", version_);
  }
  backoff_.reset();
}

}  // namespace

std::unique_ptr<Reflector> Reflector::start(const Env& env, Client& client, Options options, Sink& sink) {
  return std::make_unique<ThreadedReflector>(env, client, std::move(options), sink);
}

}  // namespace gleaner::kube
