// Cache is a local copy of all objects of one resource, kept up to date by list and watch (client-go calls this an
// informer).
//
// A thread of the cache, "gln-watch", lists and watches. After a break it resumes the watch from the last resource
// version. It lists again after a 410, and backs off with jitter while the API server can't be reached. Meanwhile the
// cache has the last known state.
//
// `decode` turns each object into a T once. The cache logs and leaves out objects that `decode` rejects. Reads are
// thread safe and return shared, immutable values.
//
// The cache calls the listener (on_change) on its thread, after it has changed. The listener must not block; usually it
// puts a key into a WorkQueue. It is called once per object of the first list. After an outage it is called for every
// object that changed meanwhile, deleted ones included.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/client.h"
#include "common/kube/object.h"
#include "common/kube/reflector.h"

namespace gleaner::kube {

template <typename T>
class Cache : private Reflector::Sink {
 public:
  using Pointer = std::shared_ptr<const T>;
  struct Options {
    Resource resource;
    Selector selector;
    std::function<absl::StatusOr<T>(const Object&)> decode;
    // Called with the old and the new value: `before` is null for a new object, `after` is null for a deleted one. May
    // be empty.
    std::function<void(const Pointer& before, const Pointer& after)> on_change;
    // Returns the key under which by_index() finds the object, for example "namespace/job" of a pod. An empty key is
    // not indexed. May be empty.
    std::function<std::string(const T&)> index;
    absl::Duration longest_delay = absl::Seconds(10);  // between attempts while the server can't be reached
  };

  // Starts the cache's thread and returns without a wait; see wait_synced(). `client` and `env` must outlive the cache.
  static std::unique_ptr<Cache> start(const Env& env, Client& client, Options options) {
    auto cache = std::unique_ptr<Cache>(new Cache(env, std::move(options)));
    const Options& ours = cache->options_;
    cache->reflector_ = Reflector::start(
        env, client, {.resource = ours.resource, .selector = ours.selector, .longest_delay = ours.longest_delay},
        *cache);
    return cache;
  }
  ~Cache() override { reflector_.reset(); }  // stops the thread; the listener is not called afterwards

  // Waits until the first list is complete, for at most `timeout`. Returns whether it is complete.
  bool wait_synced(absl::Duration timeout) const { return reflector_->wait_synced(timeout); }
  bool synced() const { return wait_synced(absl::ZeroDuration()); }

  // Returns the object with this key, "namespace/name" or "name"; null if there is none.
  Pointer get(absl::string_view key) const {
    absl::ReaderMutexLock lock(&mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second.value;
  }
  std::vector<Pointer> list() const {
    absl::ReaderMutexLock lock(&mutex_);
    std::vector<Pointer> all;
    all.reserve(entries_.size());
    for (const auto& [key, entry] : entries_) all.push_back(entry.value);
    return all;
  }
  // Returns the objects whose Options::index is `index_key`.
  std::vector<Pointer> by_index(absl::string_view index_key) const {
    absl::ReaderMutexLock lock(&mutex_);
    const auto found = index_.find(index_key);
    return found == index_.end() ? std::vector<Pointer>() : found->second;
  }
  size_t size() const {
    absl::ReaderMutexLock lock(&mutex_);
    return entries_.size();
  }
  Reflector::Counts counts() const { return reflector_->counts(); }

 private:
  struct Entry {
    Pointer value;
    std::string version;
    uint64_t seen = 0;  // value of `lists_` when the object was last put
  };

  Cache(const Env& env, Options options) : env_(env), options_(std::move(options)) {}

  void begin_list() override { ++lists_; }

  void end_list() override {
    std::vector<std::string> gone;
    {
      absl::ReaderMutexLock lock(&mutex_);
      for (const auto& [key, entry] : entries_) {
        if (entry.seen != lists_) gone.push_back(key);
      }
    }
    for (const std::string& key : gone) erase(key);
  }

  void put(const Object& object) override {
    const std::string key = key_of(object);
    std::string version = resource_version_of(object);
    if (touch(key, version)) return;
    absl::StatusOr<T> decoded = options_.decode(object);
    if (!decoded.ok()) {
      env_.log->warning("an object can't be decoded and is left out of the cache", "resource", options_.resource.plural,
                        "object", key, "why", decoded.status().ToString());
      return erase(key);
    }
    auto after = std::make_shared<const T>(*std::move(decoded));
    Pointer before;
    {
      absl::MutexLock lock(&mutex_);
      Entry& entry = entries_[key];
      before = std::exchange(entry.value, after);
      entry.version = std::move(version);
      entry.seen = lists_;
      reindex(before, after);
    }
    if (options_.on_change) options_.on_change(before, after);
  }

  void remove(const Object& object) override { erase(key_of(object)); }

  // Marks the object as seen in the current list. Returns true if the cache has the object in this version.
  bool touch(const std::string& key, const std::string& version) {
    absl::MutexLock lock(&mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return false;
    found->second.seen = lists_;
    return found->second.version == version;
  }

  void erase(const std::string& key) {
    Pointer before;
    {
      absl::MutexLock lock(&mutex_);
      const auto found = entries_.find(key);
      if (found == entries_.end()) return;
      before = std::move(found->second.value);
      entries_.erase(found);
      reindex(before, nullptr);
    }
    if (options_.on_change) options_.on_change(before, nullptr);
  }

  void reindex(const Pointer& before, const Pointer& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!options_.index) return;
    const std::string old_key = before == nullptr ? "" : options_.index(*before);
    const std::string new_key = after == nullptr ? "" : options_.index(*after);
    if (!old_key.empty()) {
      std::vector<Pointer>& values = index_[old_key];
      if (const auto at = std::find(values.begin(), values.end(), before); at != values.end()) values.erase(at);
      if (values.empty()) index_.erase(old_key);
    }
    if (!new_key.empty()) index_[new_key].push_back(after);
  }

  const Env env_;
  const Options options_;
  uint64_t lists_ = 0;  // number of lists begun; used by the reflector's thread only

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::vector<Pointer>> index_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<Reflector> reflector_;
};

}  // namespace gleaner::kube
