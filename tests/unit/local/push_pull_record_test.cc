// Tests of the leader's record of push_pulls, above all with messages that a correct rank never sends.
#include "comm-lib/local/push_pull_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gleaner::local {
namespace {

using ::testing::HasSubstr;
using Next = PushPullRecord::Next;

TEST(PushPullRecord, GoesFromReadyToReducedToPublished) {
  PushPullRecord record(3);
  record.add(2);
  for (uint64_t step = 0; step < 3; ++step) {
    EXPECT_FALSE(record.open());
    EXPECT_EQ(*record.on_ready(2, 0, step, ReduceOp::kAverage), Next::kWait);
    EXPECT_TRUE(record.open());
    EXPECT_EQ(*record.on_ready(0, 0, step, ReduceOp::kAverage), Next::kWait);
    EXPECT_EQ(*record.on_ready(1, 0, step, ReduceOp::kAverage), Next::kReduce);
    EXPECT_EQ(record.op(0), ReduceOp::kAverage);
    EXPECT_EQ(*record.on_reduced(1, 0, step), Next::kWait);
    EXPECT_FALSE(record.summed(0));
    EXPECT_EQ(*record.on_reduced(0, 0, step), Next::kNetwork);
    EXPECT_TRUE(record.summed(0));
    EXPECT_EQ(record.step(0), step);
    record.publish(0);
    EXPECT_FALSE(record.summed(0));
  }
}

TEST(PushPullRecord, AnEmptyTensorNeedsNoSums) {
  PushPullRecord record(2);
  record.add(0);
  EXPECT_EQ(*record.on_ready(0, 0, 0, ReduceOp::kSum), Next::kWait);
  EXPECT_EQ(*record.on_ready(1, 0, 0, ReduceOp::kSum), Next::kNetwork);
}

TEST(PushPullRecord, SixtyFourRanks) {
  PushPullRecord record(64);
  record.add(64);
  for (uint32_t rank = 0; rank < 63; ++rank) EXPECT_EQ(*record.on_ready(rank, 0, 0, ReduceOp::kSum), Next::kWait);
  EXPECT_EQ(*record.on_ready(63, 0, 0, ReduceOp::kSum), Next::kReduce);
}

TEST(PushPullRecord, RefusesUnexpectedMessages) {
  PushPullRecord record(3);
  record.add(2);
  const auto refused = [](const absl::StatusOr<Next>& next, absl::string_view why) {
    EXPECT_TRUE(absl::IsInvalidArgument(next.status()));
    EXPECT_THAT(std::string(next.status().message()), HasSubstr(std::string(why)));
  };
  refused(record.on_ready(1, 1, 0, ReduceOp::kSum), "local rank 1 sent READY for tensor 1; there are 1");
  refused(record.on_ready(1, 0, 1, ReduceOp::kSum), "at step 1, which is at step 0");
  refused(record.on_ready(1, 0, 0, static_cast<ReduceOp>(0)), "unknown op 0");
  refused(record.on_reduced(1, 0, 0), "does not expect it now");
  EXPECT_EQ(*record.on_ready(1, 0, 0, ReduceOp::kSum), Next::kWait);
  refused(record.on_ready(1, 0, 0, ReduceOp::kSum), "does not expect it now");
  EXPECT_EQ(*record.on_ready(0, 0, 0, ReduceOp::kSum), Next::kWait);
  EXPECT_EQ(*record.on_ready(2, 0, 0, ReduceOp::kSum), Next::kReduce);
  refused(record.on_reduced(2, 0, 0), "local rank 2 sent REDUCED");  // this rank has no slice
  EXPECT_EQ(*record.on_reduced(1, 0, 0), Next::kWait);
  refused(record.on_reduced(1, 0, 0), "does not expect it now");
  refused(record.on_ready(1, 0, 0, ReduceOp::kSum), "does not expect it now");
  EXPECT_EQ(*record.on_reduced(0, 0, 0), Next::kNetwork);
  refused(record.on_ready(1, 0, 1, ReduceOp::kSum), "does not expect it now");
}

TEST(PushPullRecord, RanksThatAreReadyByTheirGpusCopyForTheOthers) {
  PushPullRecord record(3);
  record.add(3);
  EXPECT_EQ(*record.on_ready(0, 0, 0, ReduceOp::kSum, true), Next::kWait);
  EXPECT_EQ(*record.on_ready(1, 0, 0, ReduceOp::kSum, false), Next::kWait);
  EXPECT_EQ(*record.on_ready(2, 0, 0, ReduceOp::kSum, true), Next::kCopy);
  EXPECT_EQ(record.by_gpu(0), 0b101u);
  EXPECT_EQ(*record.on_ready(2, 0, 0, ReduceOp::kSum, false), Next::kWait);
  EXPECT_EQ(*record.on_ready(0, 0, 0, ReduceOp::kSum, false), Next::kReduce);
  EXPECT_EQ(record.by_gpu(0), 0u);
}

TEST(PushPullRecord, AllMayBeReadyByTheirGpus) {
  PushPullRecord record(2);
  record.add(2);
  EXPECT_EQ(*record.on_ready(0, 0, 0, ReduceOp::kSum, true), Next::kWait);
  EXPECT_EQ(*record.on_ready(1, 0, 0, ReduceOp::kSum, true), Next::kReduce);
  EXPECT_EQ(record.by_gpu(0), 0b11u);
  EXPECT_EQ(*record.on_reduced(0, 0, 0), Next::kWait);
  EXPECT_EQ(*record.on_reduced(1, 0, 0), Next::kNetwork);
  record.publish(0, true);
  EXPECT_TRUE(record.open());
  EXPECT_EQ(*record.on_placed(1, 0, 0), Next::kWait);
  EXPECT_EQ(*record.on_placed(0, 0, 0), Next::kGather);
  EXPECT_EQ(record.step(0), 1u);
  EXPECT_FALSE(record.open());
}

TEST(PushPullRecord, DisagreementNamesTheRanks) {
  PushPullRecord record(3);
  record.add(1);
  EXPECT_EQ(*record.on_ready(0, 0, 0, ReduceOp::kAverage), Next::kWait);
  EXPECT_EQ(*record.on_ready(1, 0, 0, ReduceOp::kAverage), Next::kWait);
  EXPECT_EQ(*record.on_ready(2, 0, 0, ReduceOp::kSum), Next::kRefuse);
  EXPECT_EQ(record.first_that_asks_for(ReduceOp::kSum, 0), 2u);
  EXPECT_EQ(record.first_that_asks_for(ReduceOp::kAverage, 0), 0u);
}

TEST(PushPullRecord, ADisagreementIsFinal) {
  PushPullRecord record(2);
  record.add(1);
  EXPECT_EQ(*record.on_ready(0, 0, 0, ReduceOp::kAverage), Next::kWait);
  EXPECT_EQ(*record.on_ready(1, 0, 0, ReduceOp::kSum), Next::kRefuse);
  EXPECT_TRUE(record.open());
  EXPECT_FALSE(record.summed(0));
  for (const uint64_t step : {0, 1}) {
    EXPECT_TRUE(absl::IsInvalidArgument(record.on_ready(0, 0, step, ReduceOp::kSum).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(record.on_reduced(0, 0, step).status()));
  }
}

}  // namespace
}  // namespace gleaner::local
