// Tests of the pauses before pods are created again, and of loops that use them.
#include "operator/reconcile/pauses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

TEST(Pauses, DoubleUpToALimitAndDiffer) {
  std::set<absl::Duration> first;
  for (int job = 0; job < 100; ++job) {
    const std::string uid = absl::StrCat("uid-", job);
    first.insert(pause_after(kReleasePauses, 1, uid));
    for (const auto& [failed, seconds] : std::vector<std::pair<uint32_t, int>>{{1, 30}, {2, 60}, {4, 240}, {5, 300}}) {
      const absl::Duration pause = pause_after(kReleasePauses, failed, uid);
      EXPECT_GE(pause, absl::Seconds(seconds) * 0.75) << failed;
      EXPECT_LE(pause, absl::Seconds(seconds) * 1.25) << failed;
    }
    EXPECT_LE(pause_after(kReleasePauses, 4'000'000'000U, uid), absl::Seconds(375));
  }
  EXPECT_GT(first.size(), 90U) << "jobs that fail together try again at different times";
  EXPECT_GT(*first.rbegin() - *first.begin(), absl::Seconds(12));
}

// Two jobs that share a quota of pods.
class TwoGangs {
 public:
  explicit TwoGangs(int number) {
    for (World* world : {&worlds_[0], &worlds_[1]}) {
      world->job.meta.uid = absl::StrCat("uid-", number, "-", world == &worlds_[0] ? "a" : "b");
      world->job.run_policy.start_deadline = absl::Seconds(20);
      // An operator creates some pods per tick. The API server refuses those above the quota.
      world->creations_per_look = 1;
      world->admits = [this] { return worlds_[0].names().size() + worlds_[1].names().size() < 14; };
    }
  }

  // Runs until one gang is complete, and returns how often the two released their pods until then.
  uint32_t run() {
    for (int tick = 0; tick < 2'000; ++tick) {
      for (World& world : worlds_) {
        world.creation_pause = std::max(absl::ZeroDuration(), world.may_create - world.now);
        world.look();
        if (world.holds("Created")) return worlds_[0].job.status.attempt + worlds_[1].job.status.attempt;
        world.now += absl::Seconds(1);
      }
    }
    ADD_FAILURE() << "neither gang ever starts";
    return 0;
  }

 private:
  World worlds_[2]{World(12), World(12)};
};

TEST(Pauses, OneOfTwoGangsThatShareAQuotaWinsSoon) {
  for (int number = 0; number < 30; ++number) EXPECT_LE(TwoGangs(number).run(), 8U) << number;
}

// Counts the attempts of a job in an hour in which `fail` ends each attempt at once.
uint32_t attempts_in_an_hour(World& world, const std::function<void(World&, PodView&)>& fail) {
  world.job.run_policy.backoff_limit = api::kMaxBackoff;
  const absl::Time end = world.now + absl::Hours(1);
  for (; world.now < end; world.now += absl::Seconds(1)) {
    world.look();
    for (const std::string& name : world.names()) {
      PodView& pod = world.pod(name);
      if (pod.deletion.has_value()) {
        world.erase(name);
      } else if (!pod.finished() && !pod.obstacles.gated) {
        fail(world, pod);
      }
    }
  }
  return world.job.status.attempt;
}

void refuse(PodView& pod, const char* reason) {
  pod.node = "w0";
  pod.phase = PodView::Phase::kFailed;
  pod.ending.refused_by = reason;
}

TEST(Pauses, GrowWhateverEndsTheAttempts) {
  const std::map<std::string, std::function<void(World&, PodView&)>> failures = {
      {"refused by the kubelet", [](World&, PodView& pod) { refuse(pod, "OutOfcpu"); }},
      {"evicted for its own use", [](World&, PodView& pod) { refuse(pod, "Evicted"); }},
      {"the node shuts down",
       [](World&, PodView& pod) {
         pod.node = "w0";
         pod.phase = PodView::Phase::kFailed;
         pod.ending.evicted_by = "NodeShutdown";
       }},
      {"killed", [](World& world, PodView& pod) { world.exit(pod.name, 137); }},
      {"deleted", [](World& world, PodView& pod) { pod.deletion = world.now; }}};
  for (const auto& [name, fail] : failures) {
    World world(2);
    // Pauses of 1, 2, ... 256, 300 s and again 300 s leave time for about 17 attempts.
    const uint32_t attempts = attempts_in_an_hour(world, fail);
    EXPECT_GE(attempts, 10U) << name;
    EXPECT_LE(attempts, 24U) << name;
    EXPECT_LE(world.names().size(), 4U) << name << ": only the last two attempts have pods";
  }
}

TEST(Pauses, EndAfterAGoodRun) {
  World world(1);
  for (uint32_t attempt = 0; attempt < 3; ++attempt) {
    world.settle();
    world.run_workers();
    world.settle();
    world.now += kGoodRun;
    const std::string suffix = attempt == 0 ? "" : absl::StrCat("-r", attempt);
    world.pod(absl::StrCat("digits-worker-0", suffix)).deletion = world.now;
    world.look();
    EXPECT_EQ(world.job.status.retries, 1U);
    EXPECT_LE(*world.job.status.next_start_time - world.now, absl::Seconds(2));
    for (const std::string& name : world.names()) world.erase(name);
    world.now += absl::Seconds(2);
  }
}

}  // namespace
}  // namespace gleaner::reconcile
