// Tests caches against a real API server that is killed, frozen, and compacts old versions. At the end of each test,
// the cache and the events of its listener must agree with a fresh list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/kube/cache.h"
#include "tests/unit/kube/api_server.h"

namespace gleaner::kube {
namespace {

struct Value {
  std::string key;
  std::string version;
  std::string value;
};

absl::StatusOr<Value> decode(const Object& object) {
  Value decoded{key_of(object), resource_version_of(object), text_at(object, {"data", "value"})};
  if (decoded.value == "unreadable") return absl::InvalidArgumentError("data.value: expected something readable");
  return decoded;
}

using Versions = std::map<std::string, std::string>;  // by key

class CacheTest : public ServerTest {
 protected:
  std::unique_ptr<Cache<Value>> start_cache(Client& of, Selector selector = {}) {
    selector.ns = ns_;
    return Cache<Value>::start(env(), of,
                               {.resource = config_maps(),
                                .selector = selector,
                                .decode = decode,
                                .on_change = [this](const auto& before, const auto& after) { hear(before, after); },
                                .index = [](const Value& value) { return value.value; },
                                .longest_delay = absl::Seconds(1)});
  }
  void hear(const Cache<Value>::Pointer& before, const Cache<Value>::Pointer& after) {
    absl::MutexLock lock(&mutex_);
    const std::string& key = after != nullptr ? after->key : before->key;
    const auto known = heard_.find(key);
    const std::string known_version = known == heard_.end() ? "" : known->second;
    if (known_version != (before == nullptr ? "" : before->version)) ++contradictions_;
    if (after == nullptr) {
      heard_.erase(key);
    } else {
      heard_[key] = after->version;
    }
  }
  Versions heard() {
    absl::MutexLock lock(&mutex_);
    return heard_;
  }
  int contradictions() {
    absl::MutexLock lock(&mutex_);
    return contradictions_;
  }
  Versions fresh_list() {
    Versions versions;
    const auto list = client().list(config_maps(), {.ns = ns_});
    EXPECT_TRUE(list.ok()) << list.status();
    if (list.ok()) {
      for (const Object& object : list->items) versions[key_of(object)] = resource_version_of(object);
    }
    return versions;
  }
  static Versions versions_of(const Cache<Value>& cache) {
    Versions versions;
    for (const auto& value : cache.list()) versions[value->key] = value->version;
    return versions;
  }
  void expect_converged(const Cache<Value>& cache) {
    const Versions expected = fresh_list();
    EXPECT_TRUE(eventually([&] { return versions_of(cache) == expected; })) << "the cache differs from a fresh list";
    EXPECT_EQ(versions_of(cache), expected);
    EXPECT_TRUE(eventually([&] { return heard() == expected; }));
    EXPECT_EQ(heard(), expected) << "the events of the listener differ from a fresh list";
    EXPECT_EQ(contradictions(), 0);
  }

 private:
  absl::Mutex mutex_;
  Versions heard_ ABSL_GUARDED_BY(mutex_);
  int contradictions_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Creates, changes and deletes ConfigMaps from several threads until stopped. Failures of the server are expected.
class Writers {
 public:
  Writers(Client& client, std::function<Object(const std::string&, const std::string&)> make)
      : client_(client), make_(std::move(make)) {
    for (uint32_t i = 0; i < 4; ++i) threads_.emplace_back([this, i] { run(i); });
  }
  ~Writers() { stop(); }
  void stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  uint64_t writes() const { return writes_; }

 private:
  void run(uint32_t seed) {
    std::minstd_rand random(seed + 1);
    for (uint64_t round = 0; !stopping_; ++round) {
      const std::string name = absl::StrCat("c", random() % 200);
      const Object object = make_(name, absl::StrCat(seed, "-", round));
      const bool removes = random() % 5 == 0;
      const absl::Status status = removes ? client_.remove(config_maps(), namespace_of(object), name, {})
                                          : client_.apply(config_maps(), object, {}).status();
      if (status.ok()) ++writes_;
      if (!status.ok()) absl::SleepFor(absl::Milliseconds(20));
    }
  }

  Client& client_;
  const std::function<Object(const std::string&, const std::string&)> make_;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> writes_ = 0;
  std::vector<std::thread> threads_;
};

TEST_F(CacheTest, FollowsObjectsAndTheirIndex) {
  ASSERT_TRUE(client().create(config_maps(), config_map("a", "red")).ok());
  const auto cache = start_cache(client());
  ASSERT_TRUE(cache->wait_synced(absl::Seconds(20)));
  const std::string key = ns_ + "/a";
  ASSERT_NE(cache->get(key), nullptr);
  EXPECT_EQ(cache->get(key)->value, "red");
  EXPECT_EQ(cache->by_index("red").size(), 1U);
  EXPECT_EQ(cache->get(ns_ + "/b"), nullptr);

  const auto old = cache->get(key);
  ASSERT_TRUE(client().apply(config_maps(), config_map("a", "green"), {}).ok());
  ASSERT_TRUE(client().create(config_maps(), config_map("b", "green")).ok());
  EXPECT_TRUE(eventually([&] { return cache->by_index("green").size() == 2; }));
  EXPECT_EQ(cache->by_index("red").size(), 0U);
  EXPECT_EQ(old->value, "red") << "an object that was returned should not change";
  EXPECT_EQ(cache->size(), 2U);

  ASSERT_TRUE(client().apply(config_maps(), config_map("b", "unreadable"), {}).ok());
  EXPECT_TRUE(eventually([&] { return cache->size() == 1; })) << "unreadable objects are left out";
  ASSERT_TRUE(client().apply(config_maps(), config_map("b", "blue"), {}).ok());
  ASSERT_TRUE(client().remove(config_maps(), ns_, "a", {}).ok());
  EXPECT_TRUE(eventually([&] { return cache->get(key) == nullptr && cache->by_index("blue").size() == 1; }));
  expect_converged(*cache);
}

TEST_F(CacheTest, ASelectorLimitsItsObjects) {
  ASSERT_TRUE(client().create(config_maps(), config_map("a", "1")).ok());
  const auto cache = start_cache(client(), {.labels = "test=yes"});
  ASSERT_TRUE(cache->wait_synced(absl::Seconds(20)));
  EXPECT_EQ(cache->size(), 1U);
  ASSERT_TRUE(client().merge_patch(config_maps(), ns_, "a", {{"metadata", {{"labels", {{"test", "no"}}}}}}).ok());
  EXPECT_TRUE(eventually([&] { return cache->size() == 0; }));
  EXPECT_TRUE(eventually([&] { return heard().empty(); }));
}

TEST_F(CacheTest, ConvergesUnderWritesThoughTheServerIsKilledAndFrozen) {
  Client::Options options{.credentials = server().admin()};
  options.stall_timeout = absl::Seconds(2);
  const auto watching = client_with(options);
  const auto cache = start_cache(*watching);
  ASSERT_TRUE(cache->wait_synced(absl::Seconds(20)));
  const auto writing = client().bounded(absl::Seconds(2), nullptr);
  Writers writers(*writing,
                  [this](const std::string& name, const std::string& value) { return config_map(name, value); });
  ASSERT_TRUE(eventually([&] { return writers.writes() > 300; }));

  const uint64_t lists_before_freeze = cache->counts().lists;
  freeze_server();
  EXPECT_TRUE(eventually([&] { return cache->counts().stalls > 0; })) << "silence should end a watch";
  server().command("resume-apiserver");
  const uint64_t seen = cache->counts().events;
  EXPECT_TRUE(eventually([&] { return cache->counts().events > seen + 100; }));
  EXPECT_EQ(cache->counts().lists, lists_before_freeze) << "the watch should continue without a new list";

  server().command("kill-apiserver");
  EXPECT_GT(cache->size(), 0U) << "the last known state is served";
  server().command("start-apiserver");
  const uint64_t seen_before = cache->counts().events;
  EXPECT_TRUE(eventually([&] { return cache->counts().events > seen_before + 100; }));
  writers.stop();
  expect_converged(*cache);
  RecordProperty("writes", static_cast<int>(writers.writes()));
  RecordProperty("events", static_cast<int>(cache->counts().events));
}

TEST_F(CacheTest, ReportsChangesAfterItsVersionExpired) {
  // The cache has a separate token, and loses access while other clients change objects: its watches are short, and
  // the next one is refused.
  TokenFile token(ns_, kBobToken);
  Client::Options options{.credentials = token.credentials(server().admin())};
  options.watch_limit = absl::Seconds(1);
  const auto watching = client_with(options);
  for (const char* name : {"stays", "changes", "goes"}) {
    ASSERT_TRUE(client().create(config_maps(), config_map(name, "1")).ok());
  }
  const auto cache = start_cache(*watching);
  ASSERT_TRUE(cache->wait_synced(absl::Seconds(20)));
  ASSERT_EQ(heard().size(), 3U);

  token.write("refused");
  ASSERT_TRUE(eventually([&] { return cache->counts().breaks > 0; }));
  ASSERT_EQ(client().apply(config_maps(), config_map("changes", "2"), {}).status(), absl::OkStatus());
  ASSERT_TRUE(client().remove(config_maps(), ns_, "goes", {}).ok());
  ASSERT_TRUE(client().create(config_maps(), config_map("comes", "1")).ok());
  server().command("kill-apiserver");
  server().command("compact");
  server().command("start-apiserver");
  EXPECT_EQ(cache->size(), 3U);
  EXPECT_EQ(heard().count(ns_ + "/goes"), 1U);

  token.write(kCarolToken);
  EXPECT_TRUE(eventually([&] { return cache->get(ns_ + "/goes") == nullptr; }));
  expect_converged(*cache);
  EXPECT_GE(cache->counts().expired, 1U);
  EXPECT_EQ(heard().count(ns_ + "/goes"), 0U);
  EXPECT_EQ(heard().count(ns_ + "/comes"), 1U);
}

TEST_F(CacheTest, BookmarksKeepItsVersionFreshWithoutChanges) {
  Client::Options options{.credentials = server().admin()};
  options.watch_limit = absl::Seconds(3);  // the server sends a bookmark before it ends a watch
  const auto watching = client_with(options);
  Object foreign = config_map("foreign", "1");
  foreign["metadata"]["labels"]["test"] = "no";
  const auto cache = start_cache(*watching, {.labels = "test=yes"});
  ASSERT_TRUE(cache->wait_synced(absl::Seconds(20)));
  int number = 0;
  EXPECT_TRUE(eventually([&] {
    // Versions advance although this cache has nothing to see.
    foreign["data"]["value"] = absl::StrCat(++number);
    EXPECT_TRUE(client().apply(config_maps(), foreign, {}).ok());
    return cache->counts().watches >= 2 && cache->counts().bookmarks >= 1;
  }));
  EXPECT_EQ(cache->counts().events, 0U);
  EXPECT_EQ(cache->counts().lists, 1U);
  EXPECT_EQ(cache->counts().breaks, 0U) << "the end of a watch is no failure";
  ASSERT_TRUE(client().remove(config_maps(), ns_, "foreign", {}).ok());
  ASSERT_TRUE(client().create(config_maps(), config_map("a", "1")).ok());
  expect_converged(*cache);
}

TEST_F(CacheTest, EndsAtOnceThoughTheServerIsFrozen) {
  Client::Options options{.credentials = server().admin()};
  options.timeout = options.stall_timeout = absl::Hours(1);  // far above the time limit of the test
  const auto patient = client_with(options);
  freeze_server();
  auto cache = start_cache(*patient);
  EXPECT_FALSE(cache->wait_synced(absl::Milliseconds(200)));
  cache.reset();
  server().command("resume-apiserver");
}

}  // namespace
}  // namespace gleaner::kube
