// A local copy of all objects of one resource, kept up to date by list and watch (a "reflector" and its "informer").
//
// One thread of its own ("gln-watch") lists, watches, resumes from the last resource version after a break, lists again
// after a 410 or a stall, and backs off with jitter while the server is away; meanwhile the last known state is served.
// Objects are decoded once into T by `decode`; what decode refuses is logged and left out. Reads are thread safe and
// return shared, unchanging values. The listener is called on the cache's thread, after the store has changed, at first
// once per listed object; it must not block: it puts keys into a WorkQueue.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/kube/client.h"
#include "common/kube/reflector.h"

namespace gleaner::kube {

template <typename T>
class Cache {
 public:
  using Pointer = std::shared_ptr<const T>;
  struct Options {
    Resource resource;
    Selector selector;
    std::function<absl::StatusOr<T>(const Object&)> decode;
    // Before and after; one of them is null when the object is new or gone. May be empty.
    std::function<void(const Pointer& before, const Pointer& after)> on_change;
    // Keys under which by_index() finds an object ("ns/job" of a pod). May be empty.
    std::function<std::string(const T&)> index;
  };

  // `client` and `env` outlive the cache. Returns at once; see wait_synced().
  static std::unique_ptr<Cache> start(const Env& env, Client& client, Options options);
  ~Cache();  // stops the thread; no listener runs afterwards

  // True once the first list is in; false: not within `timeout`.
  bool wait_synced(absl::Duration timeout) const;
  bool synced() const;

  Pointer get(absl::string_view key) const;  // "namespace/name" or "name"; null: not there
  std::vector<Pointer> list() const;
  std::vector<Pointer> by_index(absl::string_view index_key) const;
  size_t size() const;
};

}  // namespace gleaner::kube
