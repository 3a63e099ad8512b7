// The leader's record, above all what it does with messages that no honest rank sends.
#include "comm-lib/local/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gleaner::local {
namespace {

using ::testing::HasSubstr;
using Next = Rounds::Next;

TEST(Rounds, GoFromReadyToReducedToPublished) {
  Rounds rounds(3);
  rounds.add(2);
  for (uint64_t step = 0; step < 3; ++step) {
    EXPECT_FALSE(rounds.open());
    EXPECT_EQ(*rounds.on_ready(2, 0, step, ReduceOp::kAverage), Next::kWait);
    EXPECT_TRUE(rounds.open());
    EXPECT_EQ(*rounds.on_ready(0, 0, step, ReduceOp::kAverage), Next::kWait);
    EXPECT_EQ(*rounds.on_ready(1, 0, step, ReduceOp::kAverage), Next::kReduce);
    EXPECT_EQ(rounds.op(0), ReduceOp::kAverage);
    EXPECT_EQ(*rounds.on_reduced(1, 0, step), Next::kWait);
    EXPECT_FALSE(rounds.summed(0));
    EXPECT_EQ(*rounds.on_reduced(0, 0, step), Next::kNetwork);
    EXPECT_TRUE(rounds.summed(0));
    EXPECT_EQ(rounds.step(0), step);
    rounds.publish(0);
    EXPECT_FALSE(rounds.summed(0));
  }
}

TEST(Rounds, NobodySumsNothing) {
  Rounds rounds(2);
  rounds.add(0);
  EXPECT_EQ(*rounds.on_ready(0, 0, 0, ReduceOp::kSum), Next::kWait);
  EXPECT_EQ(*rounds.on_ready(1, 0, 0, ReduceOp::kSum), Next::kNetwork);
}

TEST(Rounds, SixtyFourRanks) {
  Rounds rounds(64);
  rounds.add(64);
  for (uint32_t rank = 0; rank < 63; ++rank) EXPECT_EQ(*rounds.on_ready(rank, 0, 0, ReduceOp::kSum), Next::kWait);
  EXPECT_EQ(*rounds.on_ready(63, 0, 0, ReduceOp::kSum), Next::kReduce);
}

TEST(Rounds, RefuseWhatDoesNotBelong) {
  Rounds rounds(3);
  rounds.add(2);
  const auto refused = [](const absl::StatusOr<Next>& next, absl::string_view why) {
    EXPECT_TRUE(absl::IsInvalidArgument(next.status()));
    EXPECT_THAT(std::string(next.status().message()), HasSubstr(std::string(why)));
  };
  refused(rounds.on_ready(1, 1, 0, ReduceOp::kSum), "local rank 1 sent READY for tensor 1; there are 1");
  refused(rounds.on_ready(1, 0, 1, ReduceOp::kSum), "at step 1, which is at step 0");
  refused(rounds.on_ready(1, 0, 0, static_cast<ReduceOp>(0)), "unknown op 0");
  refused(rounds.on_reduced(1, 0, 0), "does not expect it now");
  EXPECT_EQ(*rounds.on_ready(1, 0, 0, ReduceOp::kSum), Next::kWait);
  refused(rounds.on_ready(1, 0, 0, ReduceOp::kSum), "does not expect it now");
  EXPECT_EQ(*rounds.on_ready(0, 0, 0, ReduceOp::kSum), Next::kWait);
  EXPECT_EQ(*rounds.on_ready(2, 0, 0, ReduceOp::kSum), Next::kReduce);
  refused(rounds.on_reduced(2, 0, 0), "local rank 2 sent REDUCED");  // it has no slice
  EXPECT_EQ(*rounds.on_reduced(1, 0, 0), Next::kWait);
  refused(rounds.on_reduced(1, 0, 0), "does not expect it now");
  refused(rounds.on_ready(1, 0, 0, ReduceOp::kSum), "does not expect it now");
  EXPECT_EQ(*rounds.on_reduced(0, 0, 0), Next::kNetwork);
  refused(rounds.on_ready(1, 0, 1, ReduceOp::kSum), "does not expect it now");
}

TEST(Rounds, DisagreementNamesTheRanks) {
  Rounds rounds(3);
  rounds.add(1);
  EXPECT_EQ(*rounds.on_ready(0, 0, 0, ReduceOp::kAverage), Next::kWait);
  EXPECT_EQ(*rounds.on_ready(1, 0, 0, ReduceOp::kAverage), Next::kWait);
  EXPECT_EQ(*rounds.on_ready(2, 0, 0, ReduceOp::kSum), Next::kRefuse);
  EXPECT_THAT(std::string(rounds.refusal(0).message()), HasSubstr("local rank 2 asks for a sum, local rank 0 for"));
}

}  // namespace
}  // namespace gleaner::local
