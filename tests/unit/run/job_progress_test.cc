#include "cli/launcher/job_progress.h"

#include <gtest/gtest.h>

namespace gleaner::launcher {
namespace {

TEST(JobProgress, ShowsTheRatesSinceTheLastLine) {
  JobProgress progress("default");
  EXPECT_EQ(progress.line({}, absl::Seconds(1)), "") << "no step yet";
  // 10 steps of 1 MiB, 0.1 s of communication each, in the first 2 s.
  EXPECT_EQ(progress.line({10, 1, 1 << 20, 0.05, 1}, absl::Seconds(2)),
            "gleaner: step 10, goodput 10.00 MiB/s per worker, 50 % of its bound, 1 summer");
  // Another 10, twice as fast, with another summer.
  EXPECT_EQ(progress.line({20, 1.5, 1 << 20, 0.025, 2}, absl::Seconds(4)),
            "gleaner: step 20, 5 steps/s, goodput 20.00 MiB/s per worker, 50 % of its bound, 2 summers");
  EXPECT_EQ(progress.line({20, 1.5, 1 << 20, 0.025, 0}, absl::Seconds(5)),
            "gleaner: step 20, 5 steps/s, goodput 20.00 MiB/s per worker, 50 % of its bound")
      << "no news of steps: the last rates";
}

TEST(JobProgress, LeavesOutWhatIsNotKnown) {
  JobProgress progress("digits");
  EXPECT_EQ(progress.line({5, 0, 0, 0, 0}, absl::Seconds(1)), "gleaner: digits: step 5");
}

}  // namespace
}  // namespace gleaner::launcher
