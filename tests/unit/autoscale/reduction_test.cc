// Tests of the summers that one job loses in one round.
#include "operator/autoscale/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/autoscale/jobs.h"

namespace gleaner::autoscale {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A job in rounds of the autoscaler.
struct Rounds {
  explicit Rounds(Job first) : job(std::move(first)), memory(job, settings, kStart) {}

  // Returns the indices of the summers that the job loses in a round at this time.
  std::vector<uint32_t> removed(absl::Duration now) {
    verdict = {};
    Reduction(settings, job, now, memory, verdict).decide();
    return removed_summers(verdict);
  }

  Settings settings = measured();
  Job job;
  JobMemory memory;
  Verdict verdict;
};

Job busy(uint32_t summers) {
  Job job = job_of("team/digits", 4, summers);
  measure(job, 2.0, 1.0);
  return job;
}

TEST(Reduction, RepeatsRemovalUntilSummerIsGone) {
  Rounds rounds(busy(2));
  rounds.job.summers[1].suitability = Suitability{false, "spare CPU 0 is below 0.1"};
  EXPECT_THAT(rounds.removed(kStart), ElementsAre(1U));
  EXPECT_EQ(rounds.verdict.code, Code::kOwnersNeedIt);
  rounds.job.summers[1].suitability = Suitability{true, ""};
  EXPECT_THAT(rounds.removed(kStart + absl::Seconds(1)), ElementsAre(1U)) << "a removal is never revoked";
  rounds.job.summers.pop_back();
  EXPECT_THAT(rounds.removed(kStart + absl::Seconds(2)), IsEmpty());
}

TEST(Reduction, LostSummerPausesItsNode) {
  Rounds rounds(busy(2));
  rounds.removed(kStart);
  rounds.job.summers.pop_back();
  rounds.removed(kStart);
  EXPECT_TRUE(rounds.memory.pauses.is_paused("s1", kStart));
  EXPECT_FALSE(rounds.memory.pauses.is_paused("s0", kStart));
}

TEST(Reduction, ReleasedSummerPausesNoNode) {
  Rounds rounds(busy(2));
  rounds.removed(kStart);
  rounds.job.max = 1;
  EXPECT_THAT(rounds.removed(kStart), ElementsAre(1U));
  rounds.job.summers.pop_back();
  rounds.removed(kStart);
  EXPECT_FALSE(rounds.memory.pauses.is_paused("s1", kStart));
}

TEST(Reduction, StopsAtMaximum) {
  Rounds rounds(busy(4));
  rounds.job.max = 2;
  EXPECT_THAT(rounds.removed(kStart), ElementsAre(3U, 2U)) << "the youngest of equal summers first";
  EXPECT_EQ(rounds.verdict.code, Code::kAboveMaximum);
}

}  // namespace
}  // namespace gleaner::autoscale
