#include "cli/networks/progress_report.h"

#include <gtest/gtest.h>

#include "tests/manual_clock.h"

namespace gleaner::cli {
namespace {

class ProgressReportTest : public testing::Test {
 protected:
  // Returns what update() writes after this time.
  std::string written_after(absl::Duration time, const std::string& text) {
    clock_.advance(time);
    testing::internal::CaptureStderr();
    report_.update([&] { return text; });
    return testing::internal::GetCapturedStderr();
  }

  ManualClock clock_;
  ProgressReport report_{clock_, "gleaner test"};
};

TEST_F(ProgressReportTest, FirstLineAfterTwoSeconds) {
  EXPECT_EQ(written_after(absl::ZeroDuration(), "began"), "");
  EXPECT_EQ(written_after(absl::Milliseconds(1999), "nearly"), "");
  EXPECT_EQ(written_after(absl::Milliseconds(1), "half"), "gleaner test: half\n");
}

TEST_F(ProgressReportTest, OneLineASecond) {
  EXPECT_EQ(written_after(absl::Seconds(5), "10 %"), "gleaner test: 10 %\n");
  EXPECT_EQ(written_after(absl::Milliseconds(999), "11 %"), "");
  EXPECT_EQ(written_after(absl::Milliseconds(1), "12 %"), "gleaner test: 12 %\n");
}

TEST_F(ProgressReportTest, TextIsMadeOnlyWhenDue) {
  report_.update([]() -> std::string {
    ADD_FAILURE() << "no line is due";
    return "";
  });
}

TEST_F(ProgressReportTest, Elapsed) {
  clock_.advance(absl::Seconds(3));
  EXPECT_EQ(report_.elapsed(), absl::Seconds(3));
}

}  // namespace
}  // namespace gleaner::cli
