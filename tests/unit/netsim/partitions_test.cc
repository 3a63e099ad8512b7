// Runs of schedules on vectors that a job cuts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/collective/algorithms.h"
#include "common/collective/ring.h"
#include "common/netsim/schedule_run.h"
#include "common/plan/partitioner.h"
#include "networks.h"

namespace gleaner::netsim {
namespace {

using collective::Op;
using collective::OpKind;
using collective::Take;

constexpr double kCutBytes = 64 << 20;

RunResult run_uncut(const collective::Schedule& schedule, const topology::Network& net) {
  const auto result = run_schedule(schedule, net, identity(schedule.ranks), uncut(kCutBytes), {});
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

void expect_about(double seconds, double expected) { EXPECT_NEAR(seconds, expected, expected * 1e-3); }

RunResult run_cut(const collective::Schedule& schedule, const topology::Network& net, uint32_t partitions,
                  double in_flight, double frame_bytes = 0, uint32_t partial_width = 1) {
  Partitions cut{std::vector<double>(partitions, kCutBytes / partitions), {}, frame_bytes, partial_width};
  cut.limits.assign(schedule.ranks, {in_flight * kCutBytes / partitions, 0});
  const auto result = run_schedule(schedule, net, identity(schedule.ranks), cut, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

// The masters of two racks of two ranks take their ranks' vectors, exchange sums, and answer. One partition alone takes
// these steps one after the other; many overlap, so that the masters' links are busy in both directions: each carries a
// vector of the other rank and one of the other master.
TEST(Partitions, PartitionsOverlap) {
  const topology::Network net = make_network(*topology::star(4, gbit(10)));
  const auto schedule = collective::make_schedule({.algorithm = "racks", .factors = {2, 2}}, 4);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const double vector = kCutBytes * 8 / 10e9;
  expect_about(run_uncut(*schedule, net).seconds, 3 * vector);
  EXPECT_NEAR(run_cut(*schedule, net, 256, 256).seconds, 2 * vector, 0.02 * vector);
  expect_about(run_cut(*schedule, net, 256, 1).seconds, 3 * vector);
}

// One link carries all messages of a pair of ranks, so that their headers add up.
TEST(Partitions, FramesTakeTime) {
  const topology::Network net = make_network(*topology::star(2, gbit(10)));
  const double bare = run_cut(collective::ring(2), net, 16, 16).seconds;
  expect_about(run_cut(collective::ring(2), net, 16, 16, 1e6).seconds, bare + 2 * 16 * 1e6 * 8 / 10e9);
}

// Work buffers have partial sums, so that twice the vector's bytes are in flight with fp16.
TEST(Partitions, PartialSumsCountInFlight) {
  const topology::Network net = make_network(*topology::star(4, gbit(10)));
  const auto schedule = collective::make_schedule({.algorithm = "racks", .factors = {2, 2}}, 4);
  EXPECT_NEAR(run_cut(*schedule, net, 16, 2, 0, 2).seconds, run_cut(*schedule, net, 16, 1, 0, 2).seconds, 1e-9);
  EXPECT_LT(run_cut(*schedule, net, 16, 4, 0, 2).seconds, run_cut(*schedule, net, 16, 2, 0, 2).seconds);
}

// Returns the schedule of three ranks with these programs, of one step and one chunk.
collective::Schedule of_three(std::vector<std::vector<Op>> programs) {
  collective::Schedule schedule{{.ranks = 3}, "test", 1, 1, {}, {}};
  schedule.programs = std::move(programs);
  return schedule;
}
Op send(uint32_t peer) { return {OpKind::kSend, Take::kCopy, peer, 0, {0, 1}}; }
Op receive(uint32_t peer) { return {OpKind::kReceive, Take::kCopy, peer, 0, {0, 1}}; }

// The link of host 0 carries one of two partitions in `seconds`. Those of hosts 1 and 2 are fast; the one of host 2 has
// a latency. So rank 1, whose limit is one partition, has its first one in flight until a message of rank 2 arrives.
double seconds_with_late_third(std::vector<std::vector<Op>> programs, double seconds, double latency) {
  const double slow = kCutBytes / 2 * 8 / seconds, fast = 10'000 * slow;
  const topology::Network net = make_network(
      *topology::Topology::make({{"a", {}}, {"b", {}}, {"c", {}}}, {{"switch"}},
                                {{0, 3, slow, slow, 0}, {1, 3, fast, fast, 0}, {2, 3, fast, fast, latency}}));
  return run_cut(of_three(std::move(programs)), net, 2, 1).seconds;
}

// The second partition of rank 1 answers rank 0 before its turn, since a message of it has come at 6 ms. In its turn,
// the answer would arrive at 9.9 ms; and rank 0 would ask for it at 10 ms.
TEST(Partitions, MessageAdmitsBeyondTheLimit) {
  expect_about(
      seconds_with_late_third({{send(1), receive(1)}, {receive(0), send(0), receive(2)}, {send(1)}}, 2e-3, 7.9e-3),
      8e-3);
}

// Rank 1 sends its second partition before its turn, since rank 0 has waited for it for a tick (5 ms): from 0.21 s on.
TEST(Partitions, QuestionAdmitsBeyondTheLimit) {
  expect_about(seconds_with_late_third({{receive(1)}, {send(0), receive(2)}, {send(1)}}, 0.2, 0.3), 0.41);
}

TEST(Partitions, LimitsAreNeeded) {
  const topology::Network net = make_network(*topology::star(2, gbit(10)));
  const auto result = run_schedule(collective::ring(2), net, identity(2), {.bytes = {1, 1}}, {});
  EXPECT_THAT(result.status().message(), ::testing::HasSubstr("one for each of 2"));
}

}  // namespace
}  // namespace gleaner::netsim
