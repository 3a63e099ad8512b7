// A local copy of all objects of one resource, kept up to date by list and watch (a "reflector" and its "informer").
//
// One thread of its own ("gln-watch") lists, watches, resumes from the last resource version after a break, lists again
// after a 410 or a stall, and backs off with jitter while the server is away; meanwhile the last known state is served.
// Objects are decoded once into T by `decode`; what decode refuses is logged and left out. Reads are thread safe and
// return shared, unchanging values. The listener is called on the cache's thread, after the store has changed, at first
// once per listed object; it must not block: it puts keys into a WorkQueue. After an outage it is told what changed,
// deletions included.
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
    // Before and after; one of them is null when the object is new or gone. May be empty.
    std::function<void(const Pointer& before, const Pointer& after)> on_change;
    // Keys under which by_index() finds an object ("ns/job" of a pod); an empty one is not kept. May be empty.
    std::function<std::string(const T&)> index;
    absl::Duration longest_delay = absl::Seconds(10);  // between two tries while the server is away
  };

  // `client` and `env` outlive the cache. Returns at once; see wait_synced().
  static std::unique_ptr<Cache> start(const Env& env, Client& client, Options options) {
    auto cache = std::unique_ptr<Cache>(new Cache(env, std::move(options)));
    const Options& ours = cache->options_;
    cache->reflector_ = Reflector::start(
        env, client, {.resource = ours.resource, .selector = ours.selector, .longest_delay = ours.longest_delay},
        *cache);
    return cache;
  }
  ~Cache() override { reflector_.reset(); }  // stops the thread; no listener runs afterwards

  // True once the first list is in; false: not within `timeout`.
  bool wait_synced(absl::Duration timeout) const { return reflector_->wait_synced(timeout); }
  bool synced() const { return wait_synced(absl::ZeroDuration()); }

  Pointer get(absl::string_view key) const {  // "namespace/name" or "name"; null: not there
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
    uint64_t seen = 0;  // in which list, or after it
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
      env_.log->warning("an object can't be read and is left out", "resource", options_.resource.plural, "object", key,
                        "why", decoded.status().ToString());
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

  // Whether the object is here already, as it was at `version`.
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
  uint64_t lists_ = 0;  // the reflector's thread only

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::vector<Pointer>> index_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<Reflector> reflector_;
};

}  // namespace gleaner::kube
