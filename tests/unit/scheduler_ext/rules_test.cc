// Tests of the nodes that the extender allows for a pod, and of their order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/placement/node_labels.h"
#include "scheduler-ext/filter/filter.h"
#include "scheduler-ext/score/score.h"
#include "tests/unit/scheduler_ext/cluster.h"

namespace gleaner::extender {
namespace {

using placement::Pod;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const std::vector<std::string> kNames = {"n1", "n2", "n3"};

class Rules : public testing::Test {
 protected:
  Rules() : state_(clock_, 1e9) {
    for (const std::string& name : kNames) state_.set_node(ready_node(name));
  }
  void set_profiles() {
    state_.set_profile(fast_profile("n1", 0.5));
    state_.set_profile(fast_profile("n2", 10));
    state_.set_profile(fast_profile("n3", 1.5));
  }
  void set_pod(Pod pod) { state_.set_pod(std::make_shared<const Pod>(std::move(pod))); }
  std::vector<std::string> why_not(const Pod& pod) {
    std::vector<std::string> texts;
    for (const auto& refusal : filter(pod, state_.take_snapshot(pod, kNames))) texts.push_back(refusal.why_not);
    return texts;
  }
  // Returns the texts for which the nodes are refused, each once.
  std::set<std::string> reasons(const Pod& pod, const std::vector<std::string>& nodes) {
    std::set<std::string> texts;
    for (const auto& refusal : filter(pod, state_.take_snapshot(pod, nodes))) texts.insert(refusal.reason);
    return texts;
  }
  // Adds 100 nodes whose profiles `change` changes, each by its number, and returns their names.
  std::vector<std::string> add_nodes(const std::function<void(api::NodeProfile&, int)>& change) {
    std::vector<std::string> names;
    for (int i = 1; i <= 100; ++i) {
      api::NodeProfile profile = placement::spare_profile(names.emplace_back(absl::StrCat("many-", i)));
      change(profile, i);
      state_.set_node(ready_node(names.back()));
      state_.set_profile(std::make_shared<const api::NodeProfile>(std::move(profile)));
    }
    return names;
  }
  Scores scores(const Pod& pod) {
    return score(pod, state_.take_snapshot(pod, kNames), placement::default_label_levels());
  }

  StandingClock clock_;
  State state_;
};

TEST_F(Rules, SummersArePlacedOnNodesWithSpareCapacity) {
  set_profiles();
  const Pod summer = pod_of("digits-summer-0", "summer");
  EXPECT_THAT(why_not(summer), ElementsAre(HasSubstr("below 1 Gbit/s"), "", ""));
  const Scores result = scores(summer);
  EXPECT_THAT(result.scores, ElementsAre(0, 10, 8));
  EXPECT_EQ(result.best, 1u);
  EXPECT_EQ(result.bits_per_second, 2e9);  // the limit of the pod
}

// kube-scheduler writes each text of a reason once, with the number of its nodes, into the pod's condition.
TEST_F(Rules, NodesRefusedByOneRuleShareTheReason) {
  const Pod summer = pod_of("digits-summer-0", "summer");
  const std::pair<std::string, std::function<void(api::NodeProfile&, int)>> cases[] = {
      {"spare CPU below 0.5", [](auto& profile, int i) { profile.status.spare.cpus = i * 0.004; }},
      {"spare bandwidth below 1 Gbit/s", [](auto& profile, int i) { profile.status.spare.bits_per_second = i * 9e6; }},
      {"profile is old",
       [](auto& profile, int i) { profile.status.observed_time = placement::kNow - absl::Minutes(2 + i); }},
      {"clock is ahead",
       [](auto& profile, int i) { profile.status.observed_time = placement::kNow + absl::Minutes(2 + i); }},
      {"agent is not ready",
       [](auto& profile, int i) {
         profile.status.conditions = {{.type = "Ready", .status = false, .message = absl::StrCat("NIC eth", i)}};
       }},
      {"contradicts itself", [](auto& profile, int i) { profile.status.spare.cpus = 1000 + i; }},
  };
  for (const auto& [reason, change] : cases) {
    EXPECT_THAT(reasons(summer, add_nodes(change)), ElementsAre(AllOf(StartsWith("node(s) "), HasSubstr(reason))));
  }
  Pod large = summer;
  large.memory_bytes = uint64_t{1} << 40;
  EXPECT_THAT(reasons(large, add_nodes([](auto& profile, int i) { profile.status.spare.memory_bytes = i; })),
              ElementsAre(HasSubstr("spare memory below 1.00 TiB")));
}

TEST_F(Rules, OnlyTheBestNodeScoresTen) {
  for (const std::string& name : kNames) state_.set_profile(fast_profile(name));
  EXPECT_THAT(scores(pod_of("digits-summer-0", "summer")).scores, ElementsAre(10, 9, 9));
}

TEST_F(Rules, NoSummersOnTheJobsOwnMachines) {
  set_profiles();
  set_pod(pod_of("digits-worker-0", "worker", "n2"));
  const Pod summer = pod_of("digits-summer-1", "summer");
  EXPECT_THAT(why_not(summer), ElementsAre(Not(IsEmpty()), HasSubstr("share the worker's link"), ""));
  set_pod(pod_of("digits-summer-0", "summer", "n3"));
  EXPECT_THAT(why_not(summer),
              ElementsAre(Not(IsEmpty()), HasSubstr("share the worker's link"), HasSubstr("runs on it already")));
  EXPECT_THAT(scores(summer).scores, Each(0));
  EXPECT_EQ(scores(summer).best, std::nullopt);
  // A summer of another job may run where bandwidth is left; n3 has promised all of its 1.5 Gbit/s.
  EXPECT_THAT(why_not(pod_of("other-summer-0", "summer", "", "other")),
              ElementsAre(Not(IsEmpty()), "", HasSubstr("no bandwidth")));
}

TEST_F(Rules, UnknownNodesTakeNoSummers) {
  state_.set_profile(fast_profile("n2"));
  state_.remove_node("n3");
  EXPECT_THAT(why_not(pod_of("digits-summer-0", "summer")),
              ElementsAre(HasSubstr("no agent has reported"), "", HasSubstr("does not know the node")));
}

TEST_F(Rules, WithoutAnyProfileEverythingPasses) {
  const Pod summer = pod_of("digits-summer-0", "summer");
  EXPECT_THAT(why_not(summer), Each(IsEmpty()));
  EXPECT_THAT(scores(summer).scores, ElementsAre(0, 0, 0));
  EXPECT_EQ(scores(summer).best, std::nullopt);
  set_profiles();
  state_.remove_profile("n1");
  EXPECT_THAT(why_not(summer), ElementsAre(Not(IsEmpty()), "", ""));
  state_.remove_profile("n2");
  state_.remove_profile("n3");
  EXPECT_THAT(why_not(summer), Each(IsEmpty()));
}

TEST_F(Rules, WorkersMayUseAllNodesAndPreferNearOnes) {
  state_.set_node(ready_node("n1", "a"));
  state_.set_node(ready_node("n2", "b"));
  state_.set_node(ready_node("n3", "a"));
  state_.set_node(ready_node("n4", "a"));
  const Pod worker = pod_of("digits-worker-1", "worker");
  EXPECT_THAT(why_not(worker), Each(IsEmpty()));
  EXPECT_THAT(scores(worker).scores, Each(0));
  set_pod(pod_of("digits-worker-0", "worker", "n4"));
  set_pod(pod_of("other-worker-0", "worker", "n2", "other"));
  EXPECT_THAT(why_not(worker), Each(IsEmpty()));
  EXPECT_THAT(scores(worker).scores, ElementsAre(10, 0, 10));
}

TEST_F(Rules, APromisedNodeIsTaken) {
  set_profiles();
  const Pod first = pod_of("digits-summer-0", "summer"), second = pod_of("digits-summer-1", "summer");
  state_.promise(first, "n2", 2e9);
  EXPECT_THAT(why_not(second), ElementsAre(Not(IsEmpty()), HasSubstr("runs on it already"), ""));
  EXPECT_EQ(scores(second).best, 2u);
  EXPECT_THAT(why_not(first), ElementsAre(Not(IsEmpty()), "", ""));  // asked again for the same pod

  // Another job does not get the bandwidth: of 10 Gbit/s to spare, 9.5 are promised.
  state_.promise(first, "n2", 9.5e9);
  const Pod other = pod_of("other-summer-0", "summer", "", "other");
  EXPECT_THAT(why_not(other), ElementsAre(Not(IsEmpty()), HasSubstr("below 1 Gbit/s"), ""));
}

TEST_F(Rules, APromiseEndsWhenThePodIsBoundOrDeletedOrLate) {
  set_profiles();
  const Pod first = pod_of("digits-summer-0", "summer"), second = pod_of("digits-summer-1", "summer");
  const auto taken = [&] { return !why_not(second)[1].empty(); };
  state_.promise(first, "n2", 2e9);
  EXPECT_TRUE(taken());
  set_pod(first);  // is not bound yet
  EXPECT_TRUE(taken());
  set_pod(pod_of("digits-summer-0", "summer", "n3"));  // the scheduler chose another node
  EXPECT_FALSE(taken());
  state_.promise(first, "n2", 2e9);
  state_.remove_pod(first.key);
  EXPECT_FALSE(taken());
  state_.promise(first, "n2", 2e9);
  clock_.advance(kPromiseLife - absl::Milliseconds(1));
  EXPECT_TRUE(taken());
  clock_.advance(absl::Milliseconds(1));
  EXPECT_FALSE(taken());
}

// Calls see a consistent state of machines while everything changes concurrently.
TEST_F(Rules, ConcurrentCallsAreSafe) {
  set_profiles();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < 500; ++i) {
        const Pod summer = pod_of(absl::StrCat("digits-summer-", thread), "summer");
        if (thread == 0) state_.set_profile(fast_profile("n2", i % 20 + 1));
        if (thread == 1) set_pod(pod_of("x-summer-0", "summer", i % 2 ? "n2" : "n3", "x"));
        if (thread == 2) state_.promise(summer, "n3", 1e9);
        const Snapshot snapshot = state_.take_snapshot(summer, kNames);
        const auto reasons = filter(summer, snapshot);
        const auto result = score(summer, snapshot, placement::default_label_levels());
        for (size_t node = 0; node < reasons.size(); ++node) {
          ASSERT_TRUE(reasons[node].reason.empty() || result.scores[node] == 0);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gleaner::extender
