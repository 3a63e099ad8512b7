// Tests of the distance between machines by their labels.
#include <gtest/gtest.h>

#include "common/placement/node_labels.h"
#include "common/placement/placement.h"

namespace gleaner::placement {
namespace {

constexpr char kRegion[] = "topology.kubernetes.io/region";
constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr char kRack[] = "topology.kubernetes.io/rack";

Machine machine(absl::flat_hash_map<std::string, std::string> labels) {
  Machine machine;
  machine.labels = std::move(labels);
  return machine;
}

TEST(ScoreWorker, NearerIsBetter) {
  const Machine placed = machine({{kRegion, "eu"}, {kZone, "a"}, {kRack, "r1"}});
  const auto score = [&](const Machine& candidate) { return score_worker(candidate, {&placed}); };
  EXPECT_EQ(score(placed), 100u);
  EXPECT_EQ(score(machine({{kRegion, "eu"}, {kZone, "a"}, {kRack, "r2"}})), 67u);
  EXPECT_EQ(score(machine({{kRegion, "eu"}, {kZone, "b"}, {kRack, "r1"}})), 33u);  // r1 is a rack of another zone
  EXPECT_EQ(score(machine({{kRegion, "us"}, {kZone, "a"}, {kRack, "r1"}})), 0u);
  EXPECT_EQ(score(machine({{kRegion, "eu"}, {kZone, "a"}})), 67u);  // the rack is unknown
  EXPECT_EQ(score(machine({})), 0u);
}

TEST(ScoreWorker, IsTheMeanOverPlacedWorkers) {
  const Machine a = machine({{kZone, "a"}}), b = machine({{kZone, "b"}}), bare = machine({});
  EXPECT_EQ(score_worker(a, {&a, &a, &b}), 67u);
  EXPECT_EQ(score_worker(b, {&a, &a, &b}), 33u);
  EXPECT_EQ(score_worker(a, {}), 0u);
  EXPECT_EQ(score_worker(bare, {&bare, &bare}), 0u);  // nothing is known about any machine, so none is near
}

TEST(ScoreWorker, UsesTheGivenLabels) {
  const Machine a = machine({{kZone, "a"}, {"example.com/pod", "p1"}});
  const Machine b = machine({{kZone, "b"}, {"example.com/pod", "p1"}});
  EXPECT_EQ(score_worker(b, {&a}, {{"example.com/pod"}}), 100u);
  EXPECT_EQ(score_worker(b, {&a}, {{"example.com/pod"}, {kZone}}), 50u);
  EXPECT_EQ(score_worker(b, {&a}, {{kZone}, {"example.com/pod"}}), 0u);
}

TEST(LabelLevels, DefaultsGoFromWideToNarrow) {
  const LabelLevels levels = default_label_levels();
  const auto at = [&](const char* label) {
    return std::find(levels.begin(), levels.end(), LabelLevel{label}) - levels.begin();
  };
  EXPECT_LT(at(kRegion), at(kZone));
  EXPECT_LT(at(kZone), at(kRack));
  EXPECT_LT(static_cast<size_t>(at(kRack)), levels.size());
}

// The labels of one node of the fabric core c, spine s and `leaf`, by each release of Topograph.
std::vector<absl::flat_hash_map<std::string, std::string>> generations(const std::string& leaf) {
  return {{{"fabric.topograph.run/tier-2", "c"},
           {"fabric.topograph.run/tier-1", "s"},
           {"fabric.topograph.run/tier-0", leaf}},
          {{"network.topology.nvidia.com/core", "c"},
           {"network.topology.nvidia.com/spine", "s"},
           {"network.topology.nvidia.com/leaf", leaf}},
          {{"network.topology.nvidia.com/datacenter", "c"},
           {"network.topology.nvidia.com/spine", "s"},
           {"network.topology.nvidia.com/block", leaf}}};
}

TEST(Topograph, LabelsOfAllReleasesAreRead) {
  const auto near = generations("l1"), far = generations("l2");
  for (size_t i = 0; i < near.size(); ++i) {
    const Machine placed = machine(near[i]);
    for (size_t j = 0; j < near.size(); ++j) {
      EXPECT_EQ(score_worker(machine(near[j]), {&placed}), 100u) << i << j;
      EXPECT_EQ(score_worker(machine(far[j]), {&placed}), 67u) << i << j;
    }
  }
}

TEST(Topograph, NewLabelsTakePrecedenceAndCountOnce) {
  for (const auto& old : {generations("stale")[1], generations("stale")[2]}) {
    auto labels = generations("l1")[0];
    labels.insert(old.begin(), old.end());
    const Machine both = machine(labels), placed = machine(generations("l1")[0]);
    EXPECT_EQ(score_worker(both, {&placed}), 100u);
    EXPECT_EQ(score_worker(machine(generations("l2")[0]), {&both}), 67u);
    EXPECT_EQ(score_worker(machine(generations("stale")[1]), {&both}), 67u);
  }
}

TEST(Topograph, AcceleratorsAreNarrowerThanLeaves) {
  auto one = generations("l1")[0], other = one;
  one["accelerator.topograph.run/domain"] = "nvl1";
  other["network.topology.nvidia.com/accelerator"] = "nvl1";
  const Machine placed = machine(one);
  EXPECT_EQ(score_worker(machine(other), {&placed}), 100u);
  other["network.topology.nvidia.com/accelerator"] = "nvl2";
  EXPECT_EQ(score_worker(machine(other), {&placed}), 75u);
}

TEST(LabelLevels, IsParsed) {
  const auto levels = parse_label_levels("zone,example.com/row|example.com/rack");
  ASSERT_TRUE(levels.ok()) << levels.status();
  EXPECT_EQ(*levels, (LabelLevels{{"zone"}, {"example.com/row", "example.com/rack"}}));
  for (const char* wrong : {"", ",", "zone,", ",zone", "zone,,rack", "zone|", "zone, rack", "zone,zone", "a|b,b",
                            "no label", "a/b/c", "zone,probes"}) {
    EXPECT_EQ(parse_label_levels(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace gleaner::placement
