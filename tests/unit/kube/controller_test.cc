#include "common/kube/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <map>
#include <set>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace gleaner::kube {
namespace {

// A reconciler that returns given results, by key and round, and detects whether it works on one key twice at the same
// time.
class Script : public Reconciler {
 public:
  explicit Script(std::map<std::string, std::vector<Result>> results) : results_(std::move(results)) {}

  Result reconcile(const std::string& key) override {
    {
      absl::MutexLock lock(&mutex_);
      if (!running_.insert(key).second) overlap_ = true;
    }
    absl::SleepFor(absl::Milliseconds(1));
    absl::MutexLock lock(&mutex_);
    running_.erase(key);
    const size_t round = rounds_[key]++;
    const auto& results = results_[key];
    return round < results.size() ? results[round] : Result(Done{});
  }
  bool wait_for(const std::string& key, size_t rounds) {
    const auto reached = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return rounds_[key] >= rounds; };
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), absl::Minutes(1));
  }
  size_t rounds(const std::string& key) {
    absl::MutexLock lock(&mutex_);
    return rounds_[key];
  }
  bool overlap() {
    absl::MutexLock lock(&mutex_);
    return overlap_;
  }

 private:
  absl::Mutex mutex_;
  std::map<std::string, std::vector<Result>> results_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, size_t> rounds_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> running_ ABSL_GUARDED_BY(mutex_);
  bool overlap_ ABSL_GUARDED_BY(mutex_) = false;
};

// Returns how many reconciliations the registry has counted, by result.
std::map<std::string, uint64_t> counts_by_result(const prometheus::Registry& registry) {
  std::map<std::string, uint64_t> counts;
  for (const auto& family : registry.Collect()) {
    if (family.name != "gleaner_reconcile_seconds") continue;
    for (const auto& metric : family.metric) {
      for (const auto& label : metric.label) {
        if (label.name == "result") counts[label.value] += metric.histogram.sample_count;
      }
    }
  }
  return counts;
}

class ControllerTest : public testing::Test {
 protected:
  SystemEnv env_{{.component = "test", .level = LogLevel::kOff}};
  WorkQueue queue_{*env_.env().clock};
  prometheus::Registry registry_;
};

TEST_F(ControllerTest, FollowsTheResult) {
  const absl::Status why = absl::AbortedError("conflict");
  Script script({{"retry", {Retry{why}, Retry{why}}},
                 {"later", {RequeueAfter{absl::Milliseconds(5)}}},
                 {"never", {Terminal{why}}}});
  auto controller = Controller::start(env_.env(), {.name = "test"}, script, queue_, &registry_);
  for (const char* key : {"retry", "later", "never", "done"}) queue_.add(key);
  EXPECT_TRUE(script.wait_for("retry", 3));
  EXPECT_TRUE(script.wait_for("later", 2));
  EXPECT_TRUE(script.wait_for("never", 1));
  EXPECT_TRUE(script.wait_for("done", 1));
  controller.reset();
  EXPECT_EQ(queue_.failures("retry"), 0U) << "a success should end the backoff";
  EXPECT_EQ(script.rounds("never"), 1U);
  EXPECT_THAT(counts_by_result(registry_),
              testing::UnorderedElementsAre(testing::Pair("done", 3), testing::Pair("requeue", 1),
                                            testing::Pair("retry", 2), testing::Pair("terminal", 1)));
}

TEST_F(ControllerTest, OneKeyIsNeverReconciledTwiceAtOnce) {
  Script script({});
  auto controller = Controller::start(env_.env(), {.name = "test", .workers = 8}, script, queue_, nullptr);
  for (int i = 0; i < 300; ++i) {
    queue_.add("a");
    queue_.add("b");
    absl::SleepFor(absl::Microseconds(200));
  }
  EXPECT_TRUE(script.wait_for("a", 2));
  controller.reset();
  EXPECT_FALSE(script.overlap());
}

}  // namespace
}  // namespace gleaner::kube
