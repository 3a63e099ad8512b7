#include "common/strategy/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/schedule_name.h"
#include "common/topology/builders.h"

namespace gleaner::strategy {
namespace {

using testing::DoubleNear;
using testing::SizeIs;

constexpr double kBits = 10e9;
constexpr double kByte = 8 / kBits;  // seconds per byte of a link
constexpr double kLatency = 5e-6;    // of a path: two links

topology::Topology star(uint32_t hosts) { return *topology::star(hosts, {kBits, 0, kLatency / 2}); }

// Returns the model of an algorithm with these stages; fails the test if it is no candidate.
Model model_of(const std::vector<Candidate>& all, const std::string& algorithm, std::vector<uint32_t> stages = {}) {
  for (const Candidate& each : all) {
    if (each.parameters.algorithm == algorithm && each.parameters.stages == stages) return each.model;
  }
  ADD_FAILURE() << algorithm << " is no candidate";
  return {};
}

void expect_model(const Model& model, double latencies, double alone, double stream) {
  EXPECT_THAT(model.latency_seconds, DoubleNear(latencies * kLatency, 1e-12));
  EXPECT_THAT(model.alone_seconds_per_byte, DoubleNear(alone * kByte, alone * kByte * 1e-6));
  EXPECT_THAT(model.stream_seconds_per_byte, DoubleNear(stream * kByte, stream * kByte * 1e-6));
}

TEST(Candidates, ClosedFormsOnOneSwitch) {
  const auto all = candidates(star(8), 8, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  expect_model(model_of(*all, plan::kSummersStrategy), 2, 14, 1.75);
  expect_model(model_of(*all, "ring"), 14, 1.75, 1.75);
  expect_model(model_of(*all, "halving-doubling"), 6, 1.75, 1.75);
  expect_model(model_of(*all, "blueconnect", {2, 4}), 6, 1.75, 1.75);
}

TEST(Candidates, SummersShareTheLoad) {
  const auto all = candidates(star(16), 8, 8);
  ASSERT_TRUE(all.ok()) << all.status();
  expect_model(model_of(*all, plan::kSummersStrategy), 2, 14, 1);
}

TEST(Candidates, SlowUplinksSpareStagesInRacks) {
  const auto racks =
      topology::racks(3, 4, {kBits, kBits, 0});  // an uplink for four hosts is as fast as one host's link
  const auto all = candidates(*racks, 12, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  const double in_racks_first = model_of(*all, "blueconnect", {4, 3}).stream_seconds_per_byte;
  EXPECT_THAT(in_racks_first, DoubleNear(11.0 / 6 * kByte, 1e-15)) << "the hosts' own links bind";
  EXPECT_GT(model_of(*all, "blueconnect", {3, 4}).stream_seconds_per_byte, in_racks_first);
  EXPECT_THAT(model_of(*all, plan::kSummersStrategy).stream_seconds_per_byte, DoubleNear(16.0 / 3 * kByte, 1e-15));
  model_of(*all, "racks", {3, 4});
  model_of(*all, "two-level", {3, 4});
}

// 144 has hundreds of ordered factorizations. The candidates are those whose first stage stays in a rack of 16 hosts
// behind a slow uplink, and few in number.
TEST(Candidates, StagesFitTheNetwork) {
  const auto racks = topology::racks(9, 16, {kBits, kBits, kLatency / 2});
  const auto all = candidates(*racks, 144, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  size_t blueconnects = 0;
  double least = 1;
  for (const Candidate& each : *all) {
    if (each.parameters.algorithm != "blueconnect") continue;
    ++blueconnects;
    least = std::min(least, each.model.stream_seconds_per_byte);
  }
  EXPECT_LE(blueconnects, 12u);
  model_of(*all, "blueconnect", {16, 3, 3});
  EXPECT_THAT(least, DoubleNear(model_of(*all, "blueconnect", {16, 3, 3}).stream_seconds_per_byte, 1e-15));
}

TEST(Candidates, AlgorithmsThatDoNotServeAreLeftOut) {
  const auto all = candidates(star(7), 7, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  for (const Candidate& each : *all) EXPECT_NE(each.parameters.algorithm, "blueconnect");
  EXPECT_THAT(*candidates(star(1), 1, 0), SizeIs(1));
}

TEST(Candidates, BadNetworksAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(candidates(star(4), 5, 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(candidates(star(4), 0, 1).status()));
}

TEST(Fastest, SizesDecide) {
  const auto all = *candidates(star(8), 8, 0);
  const auto best = [&](double bytes) { return all[fastest(all, bytes, 1 << 20)].parameters.algorithm; };
  EXPECT_EQ(best(4), plan::kSummersStrategy) << "two messages";
  EXPECT_EQ(best(64 << 10), "halving-doubling") << "an owner's link would carry all contributions";
  const auto with_summers = *candidates(star(16), 8, 8);
  EXPECT_EQ(with_summers[fastest(with_summers, 64 << 20, 1 << 20)].parameters.algorithm, plan::kSummersStrategy);
}

TEST(Model, PartitionsFollowEachOther) {
  const Model model{1, 2, 3};
  EXPECT_EQ(model.seconds(0, 10), 1);
  EXPECT_EQ(model.seconds(10, 10), 21);
  EXPECT_EQ(model.seconds(12, 10), 27);
}

}  // namespace
}  // namespace gleaner::strategy
