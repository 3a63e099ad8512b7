#include "common/collective/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/collective/gather.h"
#include "common/collective/halving_doubling.h"
#include "common/collective/ring.h"
#include "common/collective/schedule_builder.h"
#include "tests/unit/collective/counts.h"

namespace gleaner::collective {
namespace {

using ::testing::HasSubstr;

constexpr Slice kWhole = {0, 1};

void expect_wrong(const Schedule& schedule, const std::string& message) {
  const absl::Status status = check(schedule);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

// Two ranks that exchange a vector of one chunk, the second one by the result of the first.
Schedule pair() {
  ScheduleBuilder builder("pair", {2}, 1);
  builder.transfer(1, 0, kWhole, Take::kReduce);
  builder.end_step();
  builder.transfer(0, 1, kWhole, Take::kCopy);
  builder.end_step();
  return builder.take();
}

TEST(Checker, RingsAreAllReduces) {
  for (const uint32_t ranks : tested_counts()) EXPECT_EQ(check(ring(ranks)), absl::OkStatus()) << ranks;
}

TEST(Checker, HalvingDoublingIsAnAllReduce) {
  for (const uint32_t ranks : tested_counts()) EXPECT_EQ(check(halving_doubling(ranks)), absl::OkStatus()) << ranks;
}

TEST(Checker, AcceptsPair) { EXPECT_EQ(check(pair()), absl::OkStatus()); }

TEST(Checker, PeerOutOfRange) {
  Schedule schedule = pair();
  schedule.programs[1][0].peer = 2;
  expect_wrong(schedule, "rank 1, operation 0 (send of chunk 0 to rank 2) has a peer out of range: there are 2 ranks");
}

TEST(Checker, SendToItself) {
  Schedule schedule = pair();
  schedule.programs[1][0].peer = 1;
  expect_wrong(schedule, "rank 1, operation 0 (send of chunk 0 to rank 1) has its own rank as its peer");
}

TEST(Checker, SliceOutOfRange) {
  for (const Slice slice : {Slice{0, 2}, Slice{1, 1}, Slice{0, 0}, Slice{1, ~0u}}) {
    Schedule schedule = pair();
    schedule.programs[0][1].slice = slice;
    expect_wrong(schedule, "rank 0, operation 1 (send of chunk");
    expect_wrong(schedule, "has a slice out of range");
  }
}

TEST(Checker, StepOutOfRange) {
  Schedule schedule = pair();
  schedule.programs[0][1].step = 2;
  expect_wrong(schedule, "operation 1 (send of chunk 0 to rank 1) is in step 2, but the schedule has 2 steps");
}

TEST(Checker, StepsDecrease) {
  Schedule schedule = pair();
  schedule.programs[1][0].step = 1;
  schedule.programs[1][1].step = 0;
  expect_wrong(schedule, "rank 1, operation 1 (receive-copy of chunk 0 from rank 0) is in step 0, after one in step 1");
}

TEST(Checker, StepsOfMessageDiffer) {
  Schedule schedule = pair();
  schedule.programs[1][0].step = 0;
  schedule.programs[0][0].step = 1;
  expect_wrong(schedule, "rank 0, operation 0 (receive-reduce of chunk 0 from rank 1) takes another step");
}

TEST(Checker, ProgramsMissing) {
  Schedule schedule = pair();
  schedule.programs.pop_back();
  expect_wrong(schedule, "1 programs for 2 ranks");
  schedule = pair();
  schedule.chunks = 0;
  expect_wrong(schedule, "no chunk");
}

TEST(Checker, StageNamesRankTwice) {
  Schedule schedule = pair();
  schedule.stages = {{{0}, {1}}, {{0, 1, 0}}};
  expect_wrong(schedule, "stage 1 names rank 0 twice");
  schedule.stages = {{{0, 2}}};
  expect_wrong(schedule, "stage 0 names rank 2, but there are 2 ranks");
}

TEST(Checker, SlicesOfMessageDiffer) {
  ScheduleBuilder builder("wrong", {2}, 2);
  builder.transfer(1, 0, {0, 2}, Take::kReduce);
  builder.end_step();
  Schedule schedule = builder.take();
  schedule.programs[0][0].slice = {0, 1};
  expect_wrong(schedule,
               "rank 0, operation 0 (receive-reduce of chunk 0 from rank 1) takes another slice than the message of "
               "rank 1, operation 0 (send of chunks 0 to 1 to rank 0)");
}

TEST(Checker, MessageThatNobodyReceives) {
  Schedule schedule = pair();
  schedule.programs[1].pop_back();
  expect_wrong(schedule, "rank 0, operation 1 (send of chunk 0 to rank 1) sends a message that nobody receives");
}

TEST(Checker, ReceiveWithoutMessage) {
  Schedule schedule = pair();
  schedule.programs[0].pop_back();
  expect_wrong(schedule, "rank 1, operation 1 (receive-copy of chunk 0 from rank 0) waits for ever");
}

TEST(Checker, RanksWaitForEachOther) {
  Schedule schedule = ring(3);
  for (std::vector<Op>& program : schedule.programs) std::swap(program[0], program[1]);
  expect_wrong(schedule, "rank 0, operation 0 (receive-reduce of chunk 2 from rank 2) waits for ever");
  expect_wrong(schedule, "rank 0 waits for rank 2, which waits for rank 1, which waits for rank 0");
}

TEST(Checker, ContributionAddedTwice) {
  ScheduleBuilder builder("wrong", {2}, 1);
  for (int step = 0; step < 2; ++step) {
    builder.transfer(1, 0, kWhole, Take::kReduce);
    builder.end_step();
  }
  expect_wrong(builder.take(),
               "rank 0, operation 1 (receive-reduce of chunk 0 from rank 1) would add the contribution of rank 1 to "
               "chunk 0 twice");
}

TEST(Checker, ContributionMissing) {
  Schedule schedule = pair();
  schedule.programs[0].pop_back();
  schedule.programs[1].pop_back();
  expect_wrong(schedule, "rank 1 ends without the contribution of rank 0 to chunk 0");
}

TEST(Checker, CopyOfPartialSum) {
  Schedule schedule = pair();
  schedule.programs[0][0].take = schedule.programs[1][0].take = Take::kCopy;
  expect_wrong(schedule,
               "rank 0, operation 0 (receive-copy of chunk 0 from rank 1) would copy chunk 0 without the "
               "contribution of rank 0");
}

TEST(Checker, AllGatherLacksContribution) {
  Schedule schedule = gather(3);
  schedule.programs[1].pop_back();
  schedule.programs[0].erase(schedule.programs[0].begin() + 2);
  expect_wrong(schedule, "rank 1 ends without the contribution of rank 0 to chunk 0");
}

TEST(Checker, AllGatherDoesNotAdd) {
  Schedule schedule = gather(2);
  schedule.programs[0][1].take = schedule.programs[1][0].take = Take::kReduce;
  expect_wrong(
      schedule,
      "rank 0, operation 1 (receive-reduce of chunk 1 from rank 1) would add to chunk 1, to which rank 1 alone "
      "contributes");
}

TEST(Checker, TakesOfMessageDiffer) {
  Schedule schedule = pair();
  schedule.programs[1][0].take = Take::kCopy;
  expect_wrong(schedule,
               "rank 0, operation 0 (receive-reduce of chunk 0 from rank 1) adds the message of rank 1, operation 0 "
               "(send of chunk 0 to rank 0), which is sent to be copied");
  schedule = pair();
  schedule.programs[1][1].take = Take::kCopy;
  schedule.programs[0][1].take = Take::kReduce;
  expect_wrong(schedule,
               "rank 1, operation 1 (receive-copy of chunk 0 from rank 0) copies the message of rank 0, operation 1 "
               "(send of chunk 0 to rank 1), which is sent to be added");
}

TEST(Checker, RootOutOfRange) {
  Schedule schedule = pair();
  schedule.root = 2;
  expect_wrong(schedule, "the root is rank 2, but there are 2 ranks");
}

TEST(Checker, BlocksAreChunks) {
  Schedule schedule = gather(3);
  schedule.chunks = 6;
  expect_wrong(schedule, "the schedule has 6 chunks for the 3 blocks of its all-gather; each block must be a chunk");
}

// Rank 1 passes a block on before it has the block.
TEST(Checker, CopyOfEmptyScratch) {
  ScheduleBuilder builder("wrong", {3, Postcondition::kGather}, 3);
  builder.transfer(1, 0, {1, 2}, Take::kCopy);
  builder.transfer(2, 1, {2, 1}, Take::kCopy);
  builder.end_step();
  expect_wrong(builder.take(),
               "rank 0, operation 0 (receive-copy of chunks 1 to 2 from rank 1) would copy chunk 2 without the "
               "contribution of rank 2");
}

// Only the root of a reduce needs the sum, and only rank r block r of a reduce-scatter.
TEST(Checker, ResultsWhereTheyMustEnd) {
  Schedule schedule = pair();
  schedule.programs[0].pop_back();
  schedule.programs[1].pop_back();
  schedule.postcondition = Postcondition::kReduce;
  EXPECT_EQ(check(schedule), absl::OkStatus());
  schedule.root = 1;
  expect_wrong(schedule, "rank 1 ends without the contribution of rank 0 to chunk 0");
  ScheduleBuilder builder("right", {2, Postcondition::kReduceScatter}, 2);
  builder.transfer(0, 1, {1, 1}, Take::kReduce);
  ScheduleBuilder wrong = builder;
  wrong.transfer(0, 1, {0, 1}, Take::kReduce);
  wrong.end_step();
  expect_wrong(wrong.take(), "rank 0 ends without the contribution of rank 1 to chunk 0");
  builder.transfer(1, 0, {0, 1}, Take::kReduce);
  builder.end_step();
  EXPECT_EQ(check(builder.take()), absl::OkStatus());
}

// Both ranks send their whole vectors and add what they receive, possibly before their own vector has left.
TEST(Checker, SliceChangesWhileBeingSent) {
  ScheduleBuilder builder("wrong", {2}, 1);
  builder.transfer(0, 1, kWhole, Take::kReduce);
  builder.transfer(1, 0, kWhole, Take::kReduce);
  builder.end_step();
  expect_wrong(builder.take(),
               "rank 1, operation 1 (receive-reduce of chunk 0 from rank 0) may change chunk 0 while operation 0 still "
               "sends it to rank 0");
}

// Rank 0 sends to 1 and 2. The answer of rank 1 says nothing about rank 2.
TEST(Checker, OtherPeerMayStillReceive) {
  ScheduleBuilder builder("wrong", {3}, 1);
  builder.transfer(1, 0, kWhole, Take::kReduce);
  builder.transfer(2, 0, kWhole, Take::kReduce);
  builder.end_step();
  builder.transfer(0, 1, kWhole, Take::kCopy);
  builder.transfer(0, 2, kWhole, Take::kCopy);
  builder.end_step();
  ScheduleBuilder right = builder;
  builder.transfer(1, 0, kWhole, Take::kCopy);
  builder.end_step();
  expect_wrong(builder.take(),
               "rank 0, operation 4 (receive-copy of chunk 0 from rank 1) may change chunk 0 while "
               "operation 3 still sends it to rank 2");
  // The news that rank 2 has received it may reach rank 0 through rank 1.
  right.transfer(2, 1, kWhole, Take::kCopy);
  right.end_step();
  right.transfer(1, 0, kWhole, Take::kCopy);
  right.end_step();
  EXPECT_EQ(check(right.take()), absl::OkStatus());
}

TEST(Checker, ManyRanks) {
  EXPECT_EQ(check(halving_doubling(512)), absl::OkStatus());
  EXPECT_EQ(check(ring(150)), absl::OkStatus());
}

}  // namespace
}  // namespace gleaner::collective
