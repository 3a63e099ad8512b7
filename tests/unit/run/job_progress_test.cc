#include "cli/launcher/job_progress.h"

#include <gtest/gtest.h>

namespace gleaner::launcher {
namespace {

TEST(JobProgress, ShowsStepsRatesAndTheFiguresOfTheCoordinator) {
  JobProgress progress("default");
  EXPECT_EQ(progress.line({}, absl::Seconds(1)), "") << "there is no step yet";
  EXPECT_EQ(progress.line({10, 10 << 20, "50.0 % of its bound", 1}, absl::Seconds(2)),
            "gleaner: step 10, goodput 10.00 MiB/s per worker, 50.0 % of its bound, 1 summer");
  EXPECT_EQ(progress.line({20, 20 << 20, "latency-bound", 2}, absl::Seconds(4)),
            "gleaner: step 20, 5 steps/s, goodput 20.00 MiB/s per worker, latency-bound, 2 summers");
  EXPECT_EQ(progress.line({20, 20 << 20, "latency-bound", 2}, absl::Seconds(5)),
            "gleaner: step 20, 5 steps/s, goodput 20.00 MiB/s per worker, latency-bound, 2 summers")
      << "without a new step the last rate is shown";
}

TEST(JobProgress, LeavesOutUnknownFigures) {
  JobProgress progress("digits");
  EXPECT_EQ(progress.line({5, 0, "", 0}, absl::Seconds(1)), "gleaner: digits: step 5");
}

}  // namespace
}  // namespace gleaner::launcher
