// The law on a simulated bottleneck: owners get what they would get alone, and the summers all of an idle link.
#include "tests/unit/scavenger/bottleneck.h"

#include <gtest/gtest.h>

#include <ostream>

namespace gleaner::scavenger {

static void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.to_string(); }

namespace {

using SimulatedSeconds = std::vector<Second>;

double owner_bits(const SimulatedSeconds& seconds, size_t begin, size_t end) {
  double bits = 0;
  for (size_t i = begin; i < end; ++i) bits += seconds.at(i).owner_bits;
  return bits;
}

double summers_bits(const SimulatedSeconds& seconds, size_t begin, size_t end) {
  double bits = 0;
  for (size_t i = begin; i < end; ++i) bits += seconds.at(i).summers_bits;
  return bits;
}

// Returns what happens in 24 s. The owner is there from second 5 to 20.
SimulatedSeconds run(const Scenario& scenario) { return Bottleneck(scenario).run(absl::Seconds(24)); }

// The same without summers.
SimulatedSeconds run_alone(Scenario scenario) {
  scenario.planned = 1e-9;
  return run(scenario);
}

// Returns the owner's share of what it gets alone, from second `begin` to `end`.
double owner_share(const Scenario& scenario, size_t begin, size_t end) {
  return owner_bits(run(scenario), begin, end) / owner_bits(run_alone(scenario), begin, end);
}

// A share of all combinations of the link's and the job's properties.
std::vector<Scenario> scenarios() {
  std::vector<Scenario> all;
  uint64_t number = 0;
  for (const int64_t queue_ms : {5, 30, 100}) {
    for (const int64_t base_us : {20, 1000, 10000}) {
      for (const uint32_t summers : {1U, 3U}) {
        for (const uint32_t workers : {1U, 2U, 4U, 64U}) {
          if (++number % 5 != 0) continue;
          Scenario scenario;
          scenario.queue = absl::Milliseconds(queue_ms);
          scenario.base = absl::Microseconds(base_us);
          scenario.summers = summers;
          scenario.workers = workers;
          if (workers == 1) scenario.standing = absl::ZeroDuration();  // one worker exchanges with summers alone
          scenario.seed = number;
          all.push_back(scenario);
        }
      }
    }
  }
  return all;
}

class OnBottleneck : public testing::TestWithParam<Scenario> {};

TEST_P(OnBottleneck, TakesAllOfAnIdleLinkAlthoughWorkersLinksAreFull) {
  const Scenario& scenario = GetParam();
  EXPECT_GE(summers_bits(run(scenario), 3, 8), 0.99 * 5 * scenario.planned * scenario.bits_per_second);
}

TEST_P(OnBottleneck, ElasticOwnerGetsTheLink) {
  Scenario scenario = GetParam();
  scenario.owner = Owner::kElastic;
  const SimulatedSeconds seconds = run(scenario);
  EXPECT_GE(owner_bits(seconds, 7, 20), 0.985 * owner_bits(run_alone(scenario), 7, 20));
  EXPECT_GE(seconds[22].least_share, 0.99) << "the whole planned pace, 3 s after the owner's end";
}

TEST_P(OnBottleneck, SteadyOwnerSeesHardlyAQueue) {
  Scenario scenario = GetParam();
  scenario.owner = Owner::kSteady;
  Bottleneck bottleneck(scenario);
  const SimulatedSeconds seconds = bottleneck.run(absl::Seconds(20));
  const double half = scenario.bits_per_second / 2;
  EXPECT_GE(owner_bits(seconds, 6, 20), 0.999 * 14 * half);
  EXPECT_GE(summers_bits(seconds, 8, 20), 0.95 * 12 * half) << "the summers leave the other half unused";
  EXPECT_LE(bottleneck.delay_quantile(0.95), Law().target + absl::Milliseconds(0.5));
}

TEST_P(OnBottleneck, BurstsPass) {
  Scenario scenario = GetParam();
  scenario.owner = Owner::kBursts;
  EXPECT_GE(owner_share(scenario, 5, 20), 0.99);
}

INSTANTIATE_TEST_SUITE_P(Links, OnBottleneck, testing::ValuesIn(scenarios()));

TEST(Bottleneck, ElasticOwnerHasTheLinkWithinTwoSeconds) {
  Scenario scenario;
  scenario.owner = Owner::kElastic;
  EXPECT_GE(owner_share(scenario, 5, 7), 0.95);
}

// A queue that is shorter than the target shows by lost packets alone.
TEST(Bottleneck, GivesWayBeforeAShortQueue) {
  for (const Owner owner : {Owner::kElastic, Owner::kSteady}) {
    Scenario scenario;
    scenario.queue = absl::Milliseconds(0.8);
    scenario.base = absl::Microseconds(200);
    scenario.owner = owner;
    EXPECT_GE(owner_share(scenario, 7, 20), 0.98) << static_cast<int>(owner);
  }
}

TEST(Bottleneck, GivesWayWherePacketsAreMarkedInPlaceOfLost) {
  Scenario scenario;
  scenario.queue = absl::Milliseconds(4);  // marks from 0.8 ms on
  scenario.discipline = Discipline::kEcn;
  scenario.owner = Owner::kElastic;
  EXPECT_GE(owner_share(scenario, 7, 20), 0.98);
}

// Where the network serves every connection in turn, an owner's connection has its share, whatever the summer does.
TEST(Bottleneck, OwnerHasItsShareOfAFairQueue) {
  Scenario scenario;
  scenario.discipline = Discipline::kFair;
  scenario.owner = Owner::kElastic;
  const double share = owner_share(scenario, 7, 20);
  EXPECT_GE(share, 1.0 / (1 + scenario.workers));
}

TEST(Bottleneck, GivesWayAlthoughItsClockJumps) {
  for (const absl::Duration jump : {absl::Hours(1), -absl::Seconds(4)}) {
    Scenario scenario;
    scenario.owner = Owner::kElastic;
    scenario.clock_jump = jump;
    EXPECT_GE(owner_share(scenario, 7, 20), 0.98) << jump;
  }
}

}  // namespace
}  // namespace gleaner::scavenger
