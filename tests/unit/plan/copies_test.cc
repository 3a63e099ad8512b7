// Tests of the figures of copies between GPU and CPU memory, by values that were computed by hand.
#include "common/plan/copies.h"

#include <gmock/gmock.h>

#include "common/plan/explain.h"
#include "common/plan/partitioner.h"
#include "tests/unit/plan/fleets.h"

namespace gleaner::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kGigabyte = 1'000'000'000;

// BytePS §4.2.1: M = 1 GB at 13.1 GB/s takes 0.076 s for one GPU, and (nx + y)M = 4 GB take 0.305 s for four GPUs that
// copy all of it (Eq. 8 with n = 4 and x = 1).
TEST(Copies, AreThoseOfTheBruteForceCopy) {
  EXPECT_NEAR(copy_stage(13.1e9, kGigabyte, 1, 1).seconds, 0.0763, 1e-4);
  const CopyStage four = copy_stage(13.1e9, kGigabyte, 4, 0.1);
  EXPECT_EQ(four.bytes, 4e9);
  EXPECT_NEAR(four.seconds, 0.3053, 1e-4);
}

TEST(Copies, OverlapWithTheNetworkOrAddToIt) {
  // 100 MB at 20 GB/s: 5 ms each way, beside 50 ms of network
  const CopyStage fast = copy_stage(20e9, 100'000'000, 1, 0.050);
  EXPECT_DOUBLE_EQ(fast.seconds, 0.005);
  EXPECT_DOUBLE_EQ(fast.overlapped_seconds, 0.050);
  EXPECT_DOUBLE_EQ(fast.added_seconds, 0.060);
  EXPECT_DOUBLE_EQ(fast.hiding_bytes_per_second(), 2e9);
  EXPECT_FALSE(fast.binds());
  // at 1 GB/s: 100 ms each way
  const CopyStage slow = copy_stage(1e9, 100'000'000, 1, 0.050);
  EXPECT_DOUBLE_EQ(slow.overlapped_seconds, 0.100);
  EXPECT_DOUBLE_EQ(slow.added_seconds, 0.250);
  EXPECT_TRUE(slow.binds());
  EXPECT_THAT(to_text(slow), HasSubstr("the copies limit"));
  EXPECT_THAT(to_text(fast), Not(HasSubstr("the copies limit")));
}

TEST(Copies, RemainWhereNothingMoves) {
  const CopyStage alone = copy_stage(20e9, 100'000'000, 2, 0);
  EXPECT_DOUBLE_EQ(alone.overlapped_seconds, 0.010);
  EXPECT_DOUBLE_EQ(alone.added_seconds, 0.020);
  EXPECT_EQ(alone.hiding_bytes_per_second(), 0);
}

TEST(Copies, ArePartOfAnExplanation) {
  const auto plan = make_plan(even_fleet(8, 4, 25e9), {{"w", 25'000'000}}, {}, 2);
  ASSERT_TRUE(plan.ok());
  Explanation e = explain(*plan);
  EXPECT_THAT(to_text(e), Not(HasSubstr("Copies")));
  explain_copies(*plan, 20e9, e);
  ASSERT_TRUE(e.copies.has_value());
  EXPECT_DOUBLE_EQ(e.copies->seconds, 0.010) << "two ranks copy 100 MB each";
  EXPECT_DOUBLE_EQ(e.copies->overlapped_seconds, e.seconds);
  EXPECT_DOUBLE_EQ(e.copies->added_seconds, e.seconds + 0.020);
  for (const std::string& text : {to_text(e), to_table(e)}) {
    EXPECT_THAT(text, HasSubstr("190.73 MiB each way per worker, 10 ms at 20 GB/s"));
  }
}

TEST(Copies, LeaveNoOtherAdviceWhereTheyBind) {
  for (const uint32_t summers : {4u, 8u}) {  // 8: each worker's own link limits the step
    const auto plan = make_plan(even_fleet(8, summers, 25e9), {{"w", 25'000'000}}, {}, 2);
    ASSERT_TRUE(plan.ok());
    Explanation e = explain(*plan);
    const std::string advice = summers == 8 ? "only a faster link helps" : " % less";
    explain_copies(*plan, 200e9, e);
    EXPECT_THAT(to_text(e), AllOf(HasSubstr("One more"), HasSubstr(advice)));
    explain_copies(*plan, 1e9, e);
    EXPECT_THAT(to_text(e), AllOf(HasSubstr("neither faster links nor more summers help"), HasSubstr("Limit  "),
                                  Not(HasSubstr("One more")), Not(HasSubstr(advice))));
  }
}

}  // namespace
}  // namespace gleaner::plan
