// Tests of the patience with summers that save too little.
#include "operator/autoscale/idle_summers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/unit/autoscale/jobs.h"

namespace gleaner::autoscale {
namespace {

// Returns a job of two workers, which gains nothing from its two summers.
Job wasteful() {
  Job job = job_of("team/digits", 2, 2);
  measure(job, 2.0, 1.0);
  return job;
}

// Returns the index of the summer to remove; nullopt: there is none.
std::optional<uint32_t> observed(IdleSummers& idle, const Job& job, absl::Duration now) {
  const Settings settings = measured();
  const Summer* found = idle.observe(job, Worth(job, settings, {}), now);
  return found == nullptr ? std::nullopt : std::optional<uint32_t>(found->index);
}

TEST(IdleSummers, AreRemovedAfterPatience) {
  const Job job = wasteful();
  IdleSummers idle(measured());
  EXPECT_EQ(observed(idle, job, kStart), std::nullopt);
  EXPECT_EQ(observed(idle, job, kStart + idle.patience() - absl::Seconds(1)), std::nullopt);
  EXPECT_EQ(observed(idle, job, kStart + idle.patience()), 1U) << "the youngest of equal summers";
}

TEST(IdleSummers, BusySummerIsNoneOfThem) {
  Job job = job_of("team/digits", 4, 2);
  measure(job, 2.0, 1.0);
  IdleSummers idle(measured());
  EXPECT_EQ(observed(idle, job, kStart), std::nullopt);
  EXPECT_EQ(observed(idle, job, kStart + absl::Hours(1)), std::nullopt);
}

TEST(IdleSummers, CountAnewAfterForgetting) {
  const Job job = wasteful();
  IdleSummers idle(measured());
  observed(idle, job, kStart);
  idle.forget();
  EXPECT_EQ(observed(idle, job, kStart + idle.patience()), std::nullopt);
  idle.on_removal(kStart + idle.patience());
  EXPECT_EQ(observed(idle, job, kStart + 2 * idle.patience()), std::nullopt);
}

TEST(IdleSummers, PatienceGrowsWithWrongRemovals) {
  IdleSummers idle(measured());
  const absl::Duration first = idle.patience();
  absl::Duration now = kStart;
  for (int i = 0; i < 10; ++i) {
    const absl::Duration before = idle.patience();
    idle.on_removal(now);
    now += idle.patience();
    idle.on_addition(now);
    EXPECT_EQ(idle.patience(), std::min(2 * before, IdleSummers::kLongestPatience));
  }
  idle.on_addition(now + absl::Hours(3));
  EXPECT_EQ(idle.patience(), first) << "no removal was recent";
}

}  // namespace
}  // namespace gleaner::autoscale
