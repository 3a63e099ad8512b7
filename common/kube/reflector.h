// Keeps a copy of a resource's objects elsewhere (Sink) as the API server has them: lists, watches, resumes after a
// break at the last resource version seen (events and bookmarks), lists again when that is too old, and waits with
// backoff and jitter while the server is away. What Cache<T> (cache.h) is made of.
//
// One thread of its own, "gln-watch", which also calls the sink.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/client.h"

namespace gleaner::kube {

class Reflector {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    // Between these two, put() says all there is: what was not put is gone. A list that breaks off has no end.
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
    uint64_t expired = 0;  // of those, because the resource version was too old
    uint64_t stalls = 0;   // watches that fell silent; the next one tells whether the server is there
    uint64_t events = 0;
    uint64_t bookmarks = 0;
  };

  // All three outlive it.
  static std::unique_ptr<Reflector> start(const Env& env, Client& client, Options options, Sink& sink);
  virtual ~Reflector() = default;  // stops the thread

  virtual bool wait_synced(absl::Duration timeout) const = 0;  // true once a first list was whole
  virtual Counts counts() const = 0;
};

}  // namespace gleaner::kube
