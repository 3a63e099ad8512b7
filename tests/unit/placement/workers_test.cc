// Tests of the distance between machines by their labels.
#include <gtest/gtest.h>

#include "common/placement/placement.h"
#include "common/placement/topology.h"

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
  EXPECT_EQ(score_worker(b, {&a}, {"example.com/pod"}), 100u);
  EXPECT_EQ(score_worker(b, {&a}, {"example.com/pod", kZone}), 50u);
  EXPECT_EQ(score_worker(b, {&a}, {kZone, "example.com/pod"}), 0u);
}

TEST(Topology, DefaultsGoFromWideToNarrow) {
  const std::vector<std::string> levels = default_topology();
  const auto at = [&](const char* label) { return std::find(levels.begin(), levels.end(), label) - levels.begin(); };
  EXPECT_LT(at(kRegion), at(kZone));
  EXPECT_LT(at(kZone), at(kRack));
  EXPECT_LT(static_cast<size_t>(at(kRack)), levels.size());
}

}  // namespace
}  // namespace gleaner::placement
