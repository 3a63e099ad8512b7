// Reflector keeps a copy of a resource's objects (the Sink) in step with the API server. It lists, then watches. After
// a break it resumes from the last resource version that it saw in an event or bookmark. It lists again when that
// version is too old, and retries with backoff and jitter while the server can't be reached. Cache<T> (cache.h) is
// built on it.
//
// A thread of the reflector, "gln-watch", lists, watches and calls the sink.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/backoff.h"
#include "common/base/env.h"
#include "common/kube/cancellation.h"
#include "common/kube/client.h"

namespace gleaner::kube {

class Reflector {
 public:
  // Receives the objects.
  class Sink {
   public:
    virtual ~Sink() = default;
    // For a list the reflector calls begin_list(), put() for every object, and end_list(). Objects without a put() in
    // between no longer exist. For a list that breaks off it does not call end_list().
    virtual void begin_list() = 0;
    virtual void end_list() = 0;
    virtual void put(const Object& object) = 0;
    virtual void remove(const Object& object) = 0;
  };
  struct Options {
    Resource resource;
    Selector selector;
    absl::Duration first_delay = absl::Milliseconds(200);
    absl::Duration longest_delay = absl::Seconds(10);
  };
  struct Counts {  // since the start
    uint64_t lists = 0;
    uint64_t watches = 0;
    uint64_t breaks = 0;   // lists and watches that failed
    uint64_t expired = 0;  // lists and watches that failed because the resource version was too old
    uint64_t stalls = 0;   // watches that received nothing for stall_timeout; the reflector watches again
    uint64_t events = 0;
    uint64_t bookmarks = 0;
  };

  // `env`, `client` and `sink` must outlive the reflector.
  static std::unique_ptr<Reflector> start(const Env& env, Client& client, Options options, Sink& sink);
  ~Reflector();  // stops the thread
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  // Waits until a first list is complete; false: it is not within `timeout`.
  bool wait_synced(absl::Duration timeout) const;
  Counts counts() const;

 private:
  Reflector(const Env& env, Client& client, Options options, Sink& sink);
  void run();
  absl::Status list();
  absl::Status watch();
  void on_event(const WatchEvent& event);
  void count(uint64_t Counts::*counter);
  void log_break(const absl::Status& why) const;
  void log_recovery();
  bool stopped_within(absl::Duration delay);

  const Env env_;
  Client& client_;
  const Options options_;
  Sink& sink_;
  Cancellation cancel_;
  const std::unique_ptr<Client> lister_;

  // Used by the reflector's thread only.
  std::string version_;  // of the last list, event or bookmark; empty: list next
  uint32_t page_size_ = kPageSize;
  Backoff backoff_;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // declared last, since it uses all members above
};

}  // namespace gleaner::kube
